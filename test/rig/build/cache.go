// Package build makes what a rig runs and keeps it: Kubernetes, etcd, a container
// runtime, runc and CNI plugins from Go modules, a kernel, systemd and host programs from
// Debian packages, a QEMU from Debian's source, the initramfs and the container images.
// Everything lands in one cache folder and is made again only when its inputs differ. It
// starts no process that stays.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Cache is where made things are kept, and where they come from.
type Cache struct {
	Dir    string    // absolute; created when missing
	Source string    // absolute path of the project's root
	Log    io.Writer // progress, and the output of the programs that are run
}

// Dir returns the folder of made things in the rig's folder of everything.
func Dir(home string) string { return filepath.Join(home, "cache") }

// Path is the absolute path of a made thing.
func (c Cache) Path(elem ...string) string { return filepath.Join(append([]string{c.Dir}, elem...)...) }

func (c Cache) logf(format string, args ...any) { _, _ = fmt.Fprintf(c.Log, format+"\n", args...) }

// once runs produce unless the thing called name was made from the same inputs before. Of
// several processes with the same folder, one produces and the others wait for it.
func (c Cache) once(ctx context.Context, name, inputs string, produce func() error) error {
	return c.onceLocked(ctx, commonLock, name, inputs, produce)
}

// onceLocked is once for things that have a lock of their own: the other things can be made
// meanwhile.
func (c Cache) onceLocked(ctx context.Context, lock, name, inputs string, produce func() error) error {
	if c.has(thing{name, inputs}) {
		return nil
	}
	unlock, err := c.lock(ctx, lock)
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	defer unlock()
	if c.has(thing{name, inputs}) { // by now
		return nil
	}
	stamp := c.Path(name + ".made")
	if err := os.MkdirAll(filepath.Dir(stamp), 0o755); err != nil {
		return err
	}
	if err := os.Remove(stamp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.watch("make "+name, produce); err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	return os.WriteFile(stamp, []byte(inputs), 0o644)
}

// commonLock is the lock of nearly everything: two programs that are built at the same time
// take no less time than one after the other.
const commonLock = "lock"

// lock keeps other processes from making what has this lock in the folder, until unlock is
// called or this process ends.
func (c Cache) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(c.Path(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	said := time.Now()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		if time.Since(said) >= progressInterval {
			said = time.Now()
			c.logf("rig: another process makes something in %s, waiting for it", c.Dir)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(lockInterval):
		}
	}
}

// run runs a program in dir and shows its output only when it fails.
func (c Cache) run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	_, err := c.output(ctx, dir, env, name, args...)
	return err
}

func (c Cache) output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, all strings.Builder
	cmd.Stdout = io.MultiWriter(&stdout, &all)
	cmd.Stderr = &all
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(all.String()))
	}
	return stdout.String(), nil
}
