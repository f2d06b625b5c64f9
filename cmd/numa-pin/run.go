package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
)

const (
	pinUsage = "numa-pin pin --uid=UID --claim=NAMESPACE/NAME [--cpus=LIST] [--mems=LIST] [--partition=root|isolated|none]" +
		" [--scope=container|pod [--pods=UIDS]] [--idle=LIST] [--lock=FILE] [--records=DIR]"
	useUsage       = "numa-pin use --uid=UID --claim=NAMESPACE/NAME [--function=ADDRESS [--nodes=NUMBERS]] [--lock=FILE] [--records=DIR]"
	joinedUsage    = "numa-pin joined --uid=UID --claim=NAMESPACE/NAME --group=GROUP [--lock=FILE] [--records=DIR]"
	mempolicyUsage = "numa-pin mempolicy --uid=UID --claim=NAMESPACE/NAME --want=POLICY [--lock=FILE] [--records=DIR]"
	keepUsage      = "numa-pin keep [--cgroups=DIR] [--lock=FILE] [--records=DIR] [--workqueues=DIR] [--kubelet=DIR --policies=DIR] [--heartbeat=DIR]"

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

// usageError says that the arguments are wrong, independent of the machine.
type usageError struct{ reason, usage string }

func (e usageError) Error() string { return e.reason + "; usage: " + e.usage }

func run(ctx context.Context, args []string, host host, streams streams) error {
	command, rest := "", []string(nil)
	if len(args) > 0 {
		command, rest = args[0], args[1:]
	}
	switch command {
	case "pin":
		return runPin(rest, host, streams)
	case "use":
		return runUse(rest, host, streams)
	case "joined":
		return runJoined(rest, host, streams)
	case "mempolicy":
		return runMempolicy(rest, host, streams)
	case "keep":
		return runKeep(ctx, rest, host, streams)
	case "-h", "-help", "--help", "help":
		return printUsage(streams.out, pinUsage, useUsage, joinedUsage, mempolicyUsage, keepUsage)
	}
	return usageError{fmt.Sprintf("unknown command %q", command), strings.Join([]string{pinUsage, useUsage, joinedUsage, mempolicyUsage}, ", ") + " or " + keepUsage}
}

func printUsage(out io.Writer, usages ...string) error {
	_, err := fmt.Fprintf(out, "usage: %s\n", strings.Join(usages, "\n       "))
	return err
}

// parseFlags parses the arguments of one command. If they ask for help, it prints the
// usage and help is true.
func parseFlags(flags *flag.FlagSet, args []string, usage string, out io.Writer) (help bool, err error) {
	flags.SetOutput(io.Discard)
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return true, printUsage(out, usage)
	case err != nil:
		return false, usageError{err.Error(), usage}
	case flags.NArg() > 0:
		return false, usageError{fmt.Sprintf("unexpected argument %q", flags.Arg(0)), usage}
	}
	return false, nil
}

// open opens the directories that a pin works in. It creates the directory of the
// records, which the daemon reads as another user.
func (h host) open(records string) (pin.Host, error) {
	boot, err := os.ReadFile(h.proc + "/sys/kernel/random/boot_id")
	if err != nil {
		return pin.Host{}, err
	}
	if _, err := os.Stat(records); errors.Is(err, os.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(records, 0o755), os.Chmod(records, 0o755)); err != nil {
			return pin.Host{}, err
		}
	}
	opened := pin.Host{Boot: strings.TrimSpace(string(boot)), Releaser: pin.FindReleaser(os.DirFS(h.proc)), System: os.DirFS(filepath.Join(h.machine, "sys/devices/system"))}
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
