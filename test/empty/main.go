// Command empty runs make in a Debian that has make, git and Go, and nothing else: no C
// compiler, and no lists of packages. It is as a container of Debian has it, and as a new
// user starts. What make needs, it has to install itself.
//
// Usage: empty TARGET…
//
// It runs as root on Debian, in a clone of the commit that is checked out here, and prints
// what make prints. Caches of Go and of the rig are those of the host, which may be empty. At
// the end, nothing runs and nothing is left. Exit status: 0 done, 1 not done, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: empty TARGET…")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "empty: %v\n", err)
		os.Exit(1)
	}
}

// inside runs in a mount namespace of its own, whose mounts end with it: $1 is the root, $2
// the folder of Go, $3 that of its modules, $4 that of all other caches; make's targets follow.
// What they leave running ends at the end.
const inside = `
root=$1; shift
for dir in usr/local/go root/go/pkg/mod root/.cache; do mount --bind "$1" "$root/$dir"; shift; done
mount -t proc proc "$root/proc"
for dir in sys dev; do mount --rbind "/$dir" "$root/$dir"; done
in_root() {
	chroot "$root" env -i HOME=/root PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		${GOPROXY:+GOPROXY="$GOPROXY"} ${HTTP_PROXY:+HTTP_PROXY="$HTTP_PROXY"} ${HTTPS_PROXY:+HTTPS_PROXY="$HTTPS_PROXY"} ${NO_PROXY:+NO_PROXY="$NO_PROXY"} \
		make -C /src "$@"
}
trap '[ ! -x "$root/src/bin/cluster" ] || in_root cluster-down || true' EXIT
trap 'exit 1' INT TERM
for target; do echo "empty: make $target"; in_root "$target"; done
`

func run(ctx context.Context, targets []string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("a root folder with mounts is made: run it as root")
	}
	codename, err := codename()
	if err != nil {
		return err
	}
	ofGo, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	mounts := append(strings.Fields(string(ofGo)), caches)
	root, err := os.MkdirTemp("", "empty-debian")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if err := command(ctx, "mmdebstrap", "--quiet", "--variant=minbase", "--include=make,git,ca-certificates", codename, root); err != nil {
		return err
	}
	for _, dir := range []string{"usr/local/go", "root/go/pkg/mod", "root/.cache"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for _, file := range []string{"etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"} {
		if err := replace(filepath.Join(root, file), "/"+file); err != nil {
			return err
		}
	}
	if err := command(ctx, "git", "clone", "--quiet", ".", filepath.Join(root, "src")); err != nil {
		return err
	}
	args := append([]string{"--mount", "sh", "-euc", inside, "sh", root}, mounts...)
	return command(ctx, "unshare", append(args, targets...)...)
}

// codename is the host's release of Debian.
func codename() (string, error) {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			return name, nil
		}
	}
	return "", errors.New("/etc/os-release names no release: run it on Debian")
}

// replace puts a copy of a file in the place of another one, which may be a link.
func replace(name, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	_ = os.Remove(name) // absent is fine, and creating says what else is wrong
	target, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// command runs a program that prints to the same places.
func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
