package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// stateBytes is how much of the OCI state is read. Runtimes write about 1 KiB.
const stateBytes = 1 << 20

// config is the command line of numa-pin pin.
type config struct {
	claim         pin.Claim
	scope         pin.Scope
	pods          []string   // those that scope was decided for; nil: all
	idle          cpuset.Set // the part of the claim's CPUs that the container must not run on
	lock, records string
}

// stopFile is next to the directory of the records. While it exists, nothing is pinned.
const stopFile = "stop-pinning"

// runPin pins the container whose OCI state is on standard input.
func runPin(args []string, host host, streams streams) error {
	began := time.Now()
	config, help, err := parsePin(args, streams.out)
	if help || err != nil {
		return err
	}
	stop := filepath.Join(filepath.Dir(config.records), stopFile)
	if _, err := os.Stat(stop); err == nil {
		fmt.Fprintf(streams.err, "numa-pin: not pinned to %s for claim %s: %s exists\n", config.claim.Pinning, config.claim.Name, stop)
		if err := config.recordUse(host, streams.in); err != nil {
			fmt.Fprintf(streams.err, "numa-pin: %v\n", err) // nothing may stop a container now
		}
		return nil
	}
	state, err := readState(streams.in)
	if err != nil {
		return config.errorf("container", err)
	}
	err = pinContainer(config, host, state, began)
	if err == nil {
		return nil
	}
	if left := leaveRefusal(config.claim.ClaimRef, config.records, host, state, err); left != nil {
		return fmt.Errorf("%w; leave the reason: %w", err, left)
	}
	return err
}

// recordUse records that the container uses the claim. Nothing pins it.
func (c config) recordUse(host host, stdin io.Reader) error {
	state, err := readState(stdin)
	if err != nil {
		return err
	}
	container, err := state.cgroup(host.proc)
	if err != nil {
		return err
	}
	return useLocked(host, c.lock, c.records, container, c.claim.ClaimRef)
}

func pinContainer(config config, host host, state state, began time.Time) error {
	container, err := state.cgroup(host.proc)
	if err != nil {
		return config.errorf("container "+state.ID, err)
	}
	if err := pinLocked(config, host, container, began); err != nil {
		return config.errorf("container "+container, err)
	}
	if config.idle.IsEmpty() {
		return nil
	}
	if err := keepIdle(host, state.PID, container, config.idle); err != nil {
		return config.errorf("container "+container, fmt.Errorf("keep cpus %s idle: %w", config.idle, err))
	}
	return nil
}

// leaveRefusal leaves the reason for the daemon, which puts it on the claim's pods. Not
// every runtime reports what a failed hook says.
func leaveRefusal(claim pin.ClaimRef, records string, host host, state state, why error) error {
	opened, err := host.open(records)
	if err != nil {
		return nil // that is the reason
	}
	defer closeHost(opened)
	return pin.LeaveRefusal(opened.Records, pin.Refusal{
		Claim: claim, Container: state.ID, At: time.Now().UTC(), Why: why.Error(),
	})
}

func parsePin(args []string, out io.Writer) (c config, help bool, err error) {
	flags := flag.NewFlagSet("pin", flag.ContinueOnError)
	flags.StringVar(&c.claim.UID, "uid", "", "")
	flags.StringVar(&c.claim.Name, "claim", "", "")
	flags.StringVar(&c.lock, "lock", defaultLock, "")
	flags.StringVar(&c.records, "records", defaultRecords, "")
	setFlag(flags, "cpus", &c.claim.CPUs)
	setFlag(flags, "mems", &c.claim.Mems)
	setFlag(flags, "idle", &c.idle)
	c.claim.Partition = pin.PartitionRoot
	flags.Func("partition", "", func(name string) (err error) {
		c.claim.Partition, err = pin.ParsePartition(name)
		return err
	})
	c.scope = pin.ScopeContainer
	flags.Func("scope", "", func(name string) (err error) {
		c.scope, err = pin.ParseScope(name)
		return err
	})
	flags.Func("pods", "", func(list string) error {
		c.pods = strings.Split(list, ",")
		return nil
	})
	if help, err := parseFlags(flags, args, pinUsage, out); help || err != nil {
		return c, help, err
	}
	switch {
	case c.claim.UID == "":
		return c, false, usageError{"--uid is required", pinUsage}
	case c.claim.Name == "":
		return c, false, usageError{"--claim is required", pinUsage}
	case c.claim.CPUs.IsEmpty() && c.claim.Mems.IsEmpty():
		return c, false, usageError{"--cpus or --mems is required", pinUsage}
	case !c.idle.IsEmpty() && (c.idle == c.claim.CPUs || !c.idle.IsSubsetOf(c.claim.CPUs)):
		return c, false, usageError{fmt.Sprintf("--idle=%s is not a proper subset of --cpus", c.idle), pinUsage}
	}
	return c, false, nil
}

func setFlag(flags *flag.FlagSet, name string, set *cpuset.Set) {
	flags.Func(name, "", func(list string) (err error) {
		*set, err = cpuset.Parse(list)
		return err
	})
}

// errorf says what the hook tried to do, for which claim, and why it failed.
func (c config) errorf(container string, err error) error {
	return fmt.Errorf("pin %s to %s for claim %s: %w", container, c.claim.Pinning, c.claim.Name, err)
}

func pinLocked(c config, host host, container string, began time.Time) error {
	return withHost(host, c.lock, c.records, func(opened pin.Host) error {
		c.claim.Later = c.scope == pin.ScopePod && c.pods != nil && !pin.InPod(container, c.pods)
		err := pin.Pin(opened, container, c.scope, c.claim)
		_ = pin.CountHook(c.lock, time.Since(began), err != nil) // a figure that is lost must not stop a container
		return err
	})
}

// state has the fields that the hook needs of "State" in the OCI runtime specification.
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
		return s, fmt.Errorf("OCI state of container %q has pid %d: run this as a createRuntime hook", s.ID, s.PID)
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
