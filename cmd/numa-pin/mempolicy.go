package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
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
func runMempolicy(c cli.Call, host host, streams streams) error {
	s, err := parseMempolicy(c)
	if err != nil {
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

func parseMempolicy(c cli.Call) (s seeing, err error) {
	flags := c.Flags()
	addClaim(flags, &s.claim, &s.lock, &s.records)
	want := flags.String("want", "", "memory `policy` of the claim")
	if err := c.ParseAll(flags, "uid", "claim", "want"); err != nil {
		return s, err
	}
	if s.want, err = pin.ParseMemoryPolicy(*want); err != nil {
		return s, cli.Usagef("--want: %w", err)
	}
	return s, nil
}
