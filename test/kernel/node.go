package kernel

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Environment returns the environment a process was started with.
func (o *Observer) Environment(ctx context.Context, pid int) (map[string]string, error) {
	text, err := o.Run(ctx, `tr '\0\n' '\n ' <"/proc/$1/environ"`, strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	environment := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		environment[name] = value
	}
	return environment, nil
}

// Kill sends SIGKILL to a process.
func (o *Observer) Kill(ctx context.Context, pid int) error {
	_, err := o.Run(ctx, `kill -9 "$1"`, strconv.Itoa(pid))
	return err
}

// KillNamed sends SIGKILL to every process whose command name, at most 15
// characters, is exactly this one. It is an error if there is none.
func (o *Observer) KillNamed(ctx context.Context, name string) error {
	_, err := o.Run(ctx, `
		killed=
		for file in /proc/[0-9]*/comm; do
			read -r comm <"$file" || continue
			[ "$comm" = "$1" ] || continue
			pid=${file#/proc/}
			kill -9 "${pid%/comm}" && killed=yes
		done 2>/dev/null
		[ -n "$killed" ] || { echo "no process is named $1" >&2; exit 1; }`, name)
	return err
}

// CDISpecsNaming returns the names of the node's CDI spec files that contain a
// text.
func (o *Observer) CDISpecsNaming(ctx context.Context, text string) ([]string, error) {
	out, err := o.Run(ctx, `grep -rlF -e "$1" "$2" || [ $? = 1 ]`, text, cdiFolder)
	return strings.Fields(out), err
}

// The node's cgroup v2 tree, and the cgroup in it that Block makes.
const (
	cgroupRoot    = "/proc/1/root/sys/fs/cgroup"
	blockerCgroup = cgroupRoot + "/dra-numa-test-blocker"
)

// Block makes a cgroup of its own, outside every pod, that holds the CPUs in a
// remote partition, as another tool on the node might, and checks that the
// kernel granted it. (A partition right below the root would not do: its CPUs
// may not be in a sibling's cpuset.cpus, and the kubelet sets kubepods'.) No claim may be held on the node: what earlier claims left
// exclusive on their ancestors, which would refuse the partition, is cleared.
func (o *Observer) Block(ctx context.Context, cpus cpuset.Set) error {
	out, err := o.Run(ctx, `set -e
		find "$3" -depth -name cpuset.cpus.exclusive | while read -r file; do
			[ -z "$(cat "$file")" ] || echo >"$file"
		done
		mkdir "$1"
		echo +cpuset >"$1/cgroup.subtree_control"
		echo "$2" >"$1/cpuset.cpus.exclusive"
		mkdir "$1/holder"
		cd "$1/holder"
		echo "$2" >cpuset.cpus.exclusive
		echo "$2" >cpuset.cpus
		echo root >cpuset.cpus.partition
		cat cpuset.cpus.partition`, blockerCgroup, cpus.String(), cgroupRoot)
	if err != nil {
		return fmt.Errorf("block cpus %s: %w", cpus, err)
	}
	if state := strings.TrimSpace(out); state != "root" {
		return fmt.Errorf("block cpus %s: partition is %q", cpus, state)
	}
	return nil
}

// Unblock removes what Block made. It is not an error if there is nothing.
func (o *Observer) Unblock(ctx context.Context) error {
	_, err := o.Run(ctx, `[ ! -d "$1" ] || { [ ! -d "$1/holder" ] || rmdir "$1/holder"; rmdir "$1"; }`, blockerCgroup)
	return err
}
