package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

const (
	defaultLock    = "/run/dra.numa/lock"
	defaultRecords = "/run/dra.numa/pins"
)

// host says where the kernel's files are: directories of the machine.
type host struct {
	proc, cgroups string
	workqueues    string // "" if their mask cannot be written
	machine       string // has the folder sys
}

// streams are the standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run runs one of the commands.
func run(ctx context.Context, args []string, at host, std streams) error {
	const claim, files = "--uid=UID --claim=NAMESPACE/NAME ", " [--lock=FILE] [--records=DIR]"
	hook := func(name, args, about string, run func(c cli.Call, host host, streams streams) error) cli.Command {
		return cli.Command{Name: name, Args: claim + args + files, About: about, Run: func(_ context.Context, c cli.Call) error { return run(c, at, std) }}
	}
	return cli.Program{Name: "numa-pin", Commands: []cli.Command{
		hook("pin", "[--cpus=LIST] [--mems=LIST] [--partition=root|isolated|none] [--scope=container|pod [--pods=UIDS]] [--idle=LIST] [--lift-quota=PODS] [--dry-run]",
			"Gives the container whose OCI state is on standard input the CPUs and NUMA nodes of a claim.", runPin),
		hook("use", "[--function=ADDRESS [--nodes=NUMBERS]]",
			"Records that the container whose OCI state is on standard input uses a claim.", runUse),
		hook("joined", "--group=GROUP",
			"Stops the container whose OCI state is on standard input unless it is in its group of resctrl.", runJoined),
		hook("mempolicy", "--want=POLICY",
			"Records the container whose OCI state is on standard input if it lacks its memory policy.", runMempolicy),
		{
			Name: "keep", Args: "[--cgroups=DIR] [--workqueues=DIR] [--kubelet=DIR --policies=DIR] [--heartbeat=DIR] [--logging-format=text|json]" + files,
			About: "Repairs what the hooks of all containers have recorded, until it is ended.",
			Run:   func(ctx context.Context, c cli.Call) error { return runKeep(ctx, c, at, std) },
		},
	}}.Run(ctx, args, std.out)
}

// addFiles adds the flags of all commands.
func addFiles(flags *flag.FlagSet, lock, records *string) {
	flags.StringVar(lock, "lock", defaultLock, "lock `file` of the host")
	flags.StringVar(records, "records", defaultRecords, "`directory` of the records of hooks")
}

// addClaim adds the flags of all hooks. The flags uid and claim are needed.
func addClaim(flags *flag.FlagSet, claim *pin.ClaimRef, lock, records *string) {
	flags.StringVar(&claim.UID, "uid", "", "`UID` of the claim")
	flags.StringVar(&claim.Name, "claim", "", "namespace and `name` of the claim")
	addFiles(flags, lock, records)
}

func (h host) bootID() (string, error) {
	boot, err := os.ReadFile(h.proc + "/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)), err
}

// open opens the directories that a pin works in. It creates the directory of the
// records, which the daemon reads as another user.
func (h host) open(records string) (pin.Host, error) {
	boot, err := h.bootID()
	if err != nil {
		return pin.Host{}, err
	}
	if _, err := os.Stat(records); errors.Is(err, os.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(records, 0o755), os.Chmod(records, 0o755)); err != nil {
			return pin.Host{}, err
		}
	}
	opened := pin.Host{Boot: boot, Releaser: pin.FindReleaser(os.DirFS(h.proc)), System: os.DirFS(filepath.Join(h.machine, "sys/devices/system"))}
	if opened.Cgroups, err = os.OpenRoot(h.cgroups); err != nil {
		return pin.Host{}, err
	}
	if opened.Records, err = os.OpenRoot(records); err != nil {
		opened.Cgroups.Close()
		return pin.Host{}, err
	}
	if h.workqueues == "" {
		return opened, nil
	}
	if opened.Workqueues, err = pin.OpenWorkqueues(h.workqueues); err != nil {
		closeHost(opened)
		return pin.Host{}, err
	}
	return opened, nil
}

// withHost opens the directories that a pin works in, and takes the host's lock while work
// runs.
func withHost(host host, lock, records string, work func(pin.Host) error) error {
	opened, err := host.open(records)
	if err != nil {
		return err
	}
	defer closeHost(opened)
	unlock, err := pin.Lock(lock)
	if err != nil {
		return err
	}
	defer unlock()
	return work(opened)
}

// closeHost closes what open has opened.
func closeHost(host pin.Host) {
	host.Cgroups.Close()
	host.Records.Close()
	if host.Workqueues != nil {
		host.Workqueues.Close()
	}
}
