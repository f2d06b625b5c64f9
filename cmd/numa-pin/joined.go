package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// joining is the command line of numa-pin joined.
type joining struct {
	claim                pin.ClaimRef
	group, lock, records string
}

// runJoined stops the container whose OCI state is on standard input, unless the runtime
// has put it into its group of resctrl. A runtime that does not know the field of its
// configuration says nothing. It also records that the container uses the claim, and does only
// that while pinning is stopped.
func runJoined(c cli.Call, host host, streams streams) error {
	j, err := parseJoined(c)
	if err != nil {
		return err
	}
	if _, stopped := isStopped(j.records); stopped {
		recordUse(host, streams, j.lock, j.records, j.claim)
		return nil
	}
	state, err := readState(streams.in)
	if err != nil {
		return j.errorf("container", err)
	}
	if err = j.check(host, state.PID); err == nil {
		var container string
		if container, err = state.cgroup(host.proc); err == nil {
			err = useLocked(host, j.lock, j.records, container, j.claim)
		}
	}
	if err == nil {
		return nil
	}
	return leaveRefusal(j.claim, j.records, host, state, j.errorf("container "+state.ID, err))
}

func (j joining) errorf(container string, err error) error {
	return fmt.Errorf("find %s in group %s for claim %s: %w", container, j.group, j.claim.Name, err)
}

// check returns an error if a process is in another group.
func (j joining) check(host host, pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("%s/%d/cpu_resctrl_groups", host.proc, pid))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the kernel does not say which group a process is in")
	}
	if err != nil {
		return err
	}
	group, mounted, err := pin.ResctrlGroup(string(text))
	switch {
	case err != nil:
		return err
	case !mounted:
		return errors.New("resctrl is not mounted")
	case group == "":
		return errors.New("the OCI runtime has not put it there: it must know intelRdt.closID, as runc 1.1.9 and crun 1.10 do")
	case group != j.group:
		return fmt.Errorf("it is in group %s: a container can have the ways of only one mixed claim", group)
	}
	return nil
}

func parseJoined(c cli.Call) (j joining, err error) {
	flags := c.Flags()
	addClaim(flags, &j.claim, &j.lock, &j.records)
	flags.StringVar(&j.group, "group", "", "`name` of the group of resctrl")
	return j, c.ParseAll(flags, "uid", "claim", "group")
}
