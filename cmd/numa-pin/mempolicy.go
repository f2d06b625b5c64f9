package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// seeing is the command line of numa-pin mempolicy.
type seeing struct {
	claim         pin.ClaimRef
	want          pin.MemoryPolicy // of the claim
	lock, records string
}

// runMempolicy looks whether the container whose OCI state is on standard input has the
// memory policy of its claim, and records it if not: a runtime that does not know the field
// of its configuration says nothing. The daemon tells the pod. The hook stops no container: a
// runtime ends one whose poststart hook fails.
//
// It does nothing for a runtime that runs containers in virtual machines.
func runMempolicy(args []string, host host, streams streams) error {
	s, help, err := parseMempolicy(args, streams.out)
	if help || err != nil {
		return err
	}
	if err := s.see(host, streams.in); err != nil {
		fmt.Fprintf(streams.err, "numa-pin: see the memory policy of a container of claim %s: %v\n", s.claim.Name, err)
	}
	return nil
}

func (s seeing) see(host host, stdin io.Reader) error {
	state, err := readState(stdin)
	if err != nil {
		return err
	}
	container, err := state.cgroup(host.proc)
	if errors.Is(err, pin.ErrNotSupported) || errors.Is(err, os.ErrNotExist) { // the container has ended
		return nil
	}
	if err != nil {
		return err
	}
	// The file is missing if the kernel is built without NUMA. Then there are no policies.
	text, err := os.ReadFile(filepath.Join(host.proc, strconv.Itoa(state.PID), "numa_maps"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	allowed, err := readSet(filepath.Join(host.cgroups, container, "cpuset.mems.effective"))
	if err != nil {
		return err
	}
	seen := pin.TaskMemoryPolicy(string(text))
	if !s.want.IsIgnored(seen, allowed) {
		return nil
	}
	return withHost(host, s.lock, s.records, func(opened pin.Host) error {
		return pin.IgnorePolicy(opened, container, s.claim, pin.PolicyFault{Want: s.want, Seen: seen})
	})
}

// readSet is empty if the file is missing.
func readSet(file string) (cpuset.Set, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return cpuset.Set{}, nil
	}
	if err != nil {
		return cpuset.Set{}, err
	}
	return cpuset.Parse(strings.TrimSpace(string(text)))
}

func parseMempolicy(args []string, out io.Writer) (s seeing, help bool, err error) {
	flags := flag.NewFlagSet("mempolicy", flag.ContinueOnError)
	flags.StringVar(&s.claim.UID, "uid", "", "")
	flags.StringVar(&s.claim.Name, "claim", "", "")
	flags.StringVar(&s.lock, "lock", defaultLock, "")
	flags.StringVar(&s.records, "records", defaultRecords, "")
	flags.Func("want", "", func(text string) (err error) {
		s.want, err = pin.ParseMemoryPolicy(text)
		return err
	})
	if help, err := parseFlags(flags, args, mempolicyUsage, out); help || err != nil {
		return s, help, err
	}
	for _, required := range []struct{ flag, value string }{{"uid", s.claim.UID}, {"claim", s.claim.Name}, {"want", string(s.want)}} {
		if required.value == "" {
			return s, false, usageError{"--" + required.flag + " is required", mempolicyUsage}
		}
	}
	return s, false, nil
}
