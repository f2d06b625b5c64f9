package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// resctrlFolder is where the kernel offers to mount resctrl.
const resctrlFolder = "/sys/fs/resctrl"

// runMountResctrl mounts resctrl on the host.
func runMountResctrl(_ context.Context, c cli.Call) error {
	flags := c.Flags()
	proc := flags.String("host-proc", "/proc", "`directory` with the host's processes: its process 1 is in the mount namespace of the host")
	options := flags.String("options", "", "mount `options`, separated by commas, such as mba_MBps")
	if err := c.ParseAll(flags); err != nil {
		return err
	}
	var said string
	done := make(chan error, 1)
	go func() { // its thread ends with it, so no other code runs in the host's namespace
		runtime.LockOSThread()
		var err error
		said, err = mountOnHost(*proc, *options)
		done <- err
	}()
	if err := <-done; err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.Stdout, said)
	return err
}

// mountOnHost mounts resctrl in the mount namespace of process 1, and says what it did. The
// thread that calls it must not be used again.
func mountOnHost(proc, options string) (said string, err error) {
	namespace, err := os.Open(proc + "/1/ns/mnt")
	if err != nil {
		return "", err
	}
	defer namespace.Close()
	mounts, err := os.ReadFile(proc + "/1/mounts")
	if err != nil {
		return "", err
	}
	if has, mounted := numa.ResctrlOptions(string(mounts)); mounted {
		return "resctrl is mounted already, with the options " + strings.Join(has, ","), nil
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // the kernel moves no thread that shares its root with others
		return "", fmt.Errorf("unshare the root of the thread: %w", err)
	}
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return "", fmt.Errorf("enter the mount namespace of the host: %w", err)
	}
	if _, err := os.Stat(resctrlFolder); errors.Is(err, os.ErrNotExist) {
		return "the kernel of the host has no resctrl: nothing is mounted", nil
	}
	return "resctrl is mounted now, at " + resctrlFolder, mountResctrl(options)
}

func mountResctrl(options string) error {
	err := unix.Mount("resctrl", resctrlFolder, "resctrl", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RELATIME, options)
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("mount resctrl: %w: another mount namespace has it, and the kernel mounts it only once", err)
	case errors.Is(err, unix.EINVAL) && options != "":
		return fmt.Errorf("mount resctrl with the options %q: %w: the machine does not have one of them", options, err)
	case err != nil:
		return fmt.Errorf("mount resctrl: %w", err)
	}
	return nil
}
