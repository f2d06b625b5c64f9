package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	usage = "want numa-pin pin --claim=NAMESPACE/NAME --cpus=LIST --mems=LIST --partition=root|isolated|none [--lock=FILE]"

	defaultLock = "/run/dra.numa/lock"
	// stateBytes bounds the OCI state; runtimes write about 1 KiB.
	stateBytes = 1 << 20
)

// host is where the kernel's files are: folders of the machine.
type host struct{ proc, cgroups string }

// usageError is wrong arguments, whatever the machine is like.
type usageError struct{ reason string }

func (e usageError) Error() string { return e.reason + "; " + usage }

// config is the command line.
type config struct {
	claim, lock string
	want        pin.Pinning
}

func run(args []string, host host, stdin io.Reader) error {
	config, err := parseArgs(args)
	if err != nil {
		return usageError{err.Error()}
	}
	state, err := readState(stdin)
	if err != nil {
		return config.errorf("container", err)
	}
	container, err := state.cgroup(host.proc)
	if err != nil {
		return config.errorf("container "+state.ID, err)
	}
	if err := pinLocked(config, host, container); err != nil {
		return config.errorf("container "+container, err)
	}
	return nil
}

func parseArgs(args []string) (config, error) {
	var c config
	if len(args) == 0 || args[0] != "pin" {
		return c, fmt.Errorf("command %q", args)
	}
	flags := flag.NewFlagSet("pin", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.claim, "claim", "", "")
	flags.StringVar(&c.lock, "lock", defaultLock, "")
	setFlag(flags, "cpus", &c.want.CPUs)
	setFlag(flags, "mems", &c.want.Mems)
	flags.Func("partition", "", func(name string) (err error) {
		c.want.Partition, err = pin.ParsePartition(name)
		return err
	})
	c.want.Partition = pin.PartitionRoot
	if err := flags.Parse(args[1:]); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("argument %q", flags.Arg(0))
	case c.claim == "":
		return c, fmt.Errorf("no --claim")
	case c.want.CPUs.IsEmpty() && c.want.Mems.IsEmpty():
		return c, fmt.Errorf("neither --cpus nor --mems")
	}
	return c, nil
}

func setFlag(flags *flag.FlagSet, name string, set *cpuset.Set) {
	flags.Func(name, "", func(list string) (err error) {
		*set, err = cpuset.Parse(list)
		return err
	})
}

// errorf says what was to be done, for which claim, and why it was not.
func (c config) errorf(container string, err error) error {
	return fmt.Errorf("pin %s to %s for claim %s: %w", container, c.want, c.claim, err)
}

func pinLocked(c config, host host, container string) error {
	cgroups, err := os.OpenRoot(host.cgroups)
	if err != nil {
		return err
	}
	defer cgroups.Close()
	unlock, err := pin.Lock(c.lock)
	if err != nil {
		return err
	}
	defer unlock()
	return pin.Pin(cgroups, container, c.want)
}

// state is what the hook needs of the OCI runtime specification's "State".
type state struct {
	ID  string `json:"id"`
	PID int    `json:"pid"`
}

func readState(stdin io.Reader) (s state, err error) {
	data, err := io.ReadAll(io.LimitReader(stdin, stateBytes))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read OCI state from standard input: %w", err)
	}
	if s.PID <= 0 {
		return s, fmt.Errorf("OCI state of container %q has pid %d: run this as createRuntime hook", s.ID, s.PID)
	}
	return s, nil
}

// cgroup finds the container's cgroup through its first process.
func (s state) cgroup(proc string) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("%s/%d/cgroup", proc, s.PID))
	if err != nil {
		return "", err
	}
	return pin.Container(string(data), s.ID)
}
