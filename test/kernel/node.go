package kernel

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

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

// KillNamed is KillCommand for any argument. It is an error if there is no such process.
func (o *Observer) KillNamed(ctx context.Context, name string) error {
	killed, err := o.KillCommand(ctx, name, "")
	if err == nil && len(killed) == 0 {
		err = fmt.Errorf("kill %s: no process has that name", name)
	}
	return err
}

// commandsScript lists the processes of a command name and, unless it is empty,
// with that first argument.
const commandsScript = `
	commands() {
		for folder in /proc/[0-9]*; do
			read -r comm <"$folder/comm" || continue
			[ "$comm" = "$1" ] || continue
			[ -z "$2" ] || [ "$(tr '\0' '\n' <"$folder/cmdline" | sed -n 2p)" = "$2" ] || continue
			echo "${folder#/proc/}"
		done 2>/dev/null
	}
`

// KillCommand sends SIGKILL to every process with this command name, at most 15
// characters, and this first argument, where "" stands for any. It returns their
// process ids; they are killed a second later, as without kubelet and container
// runtime nobody would hear the answer. [Observer.Gone] tells when that is done.
func (o *Observer) KillCommand(ctx context.Context, name, argument string) (pids []string, err error) {
	out, err := o.Run(ctx, commandsScript+`found=$(commands "$1" "$2")
		{ sleep 1; [ -z "$found" ] || kill -9 $found; } </dev/null >/dev/null 2>&1 &
		echo $found`, name, argument)
	return strings.Fields(out), err
}

// Signal sends a signal, such as STOP, to the processes that KillCommand would find.
func (o *Observer) Signal(ctx context.Context, signal, name, argument string) error {
	_, err := o.Run(ctx, commandsScript+`kill -"$1" $(commands "$2" "$3")`, signal, name, argument)
	return err
}

// Gone is an error as long as there is one of the processes.
func (o *Observer) Gone(ctx context.Context, pids []string) error {
	_, err := o.Run(ctx, `for pid; do [ ! -e "/proc/$pid" ] || { echo "process $pid is there" >&2; exit 1; }; done`, pids...)
	return err
}

// KillNext sends SIGKILL to the processes that KillCommand would find as soon as
// there is one, for some time from now on. It returns at once.
func (o *Observer) KillNext(ctx context.Context, name, argument string, within time.Duration) error {
	_, err := o.Run(ctx, commandsScript+`{
		tries=0
		while [ $tries -lt "$3" ]; do
			tries=$((tries + 1))
			found=$(commands "$1" "$2")
			[ -z "$found" ] || { kill -9 $found; break; }
			sleep 0.05
		done
	} </dev/null >/dev/null 2>&1 &`, name, argument, strconv.FormatInt(int64(within/(100*time.Millisecond)), 10))
	return err
}

// KillIn sends SIGKILL to every process with this command name whose cgroup has
// the text in its path, as that of a pod has the pod's uid.
func (o *Observer) KillIn(ctx context.Context, cgroup, name string) error {
	_, err := o.Run(ctx, commandsScript+`for pid in $(commands "$2" ""); do
		grep -qF -e "$1" -e "$(echo "$1" | tr - _)" "/proc/$pid/cgroup" && kill -9 "$pid"
	done; exit 0`, cgroup, name)
	return err
}

// CDISpecsNaming returns the names of the node's CDI spec files that contain a text.
func (o *Observer) CDISpecsNaming(ctx context.Context, text string) ([]string, error) {
	out, err := o.Run(ctx, `grep -rlF -e "$1" "$2" || [ $? = 1 ]`, text, cdiFolder)
	return strings.Fields(out), err
}

// Leftovers returns what the driver has on the node: files and cgroups with its name, and
// cgroups that are partitions, which nothing else on a node of the rig makes. The kubelet's
// folder is /var/lib/kubelet.
func (o *Observer) Leftovers(ctx context.Context) ([]string, error) {
	out, err := o.Run(ctx, leftoversScript, initRoot, cdiFolder)
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), err
}

// leftoversScript is given the node's file system and its CDI folder. Cgroups of others may go
// while it looks.
const leftoversScript = `for folder in "$1/var/lib/kubelet/plugins" "$1/var/lib/kubelet/plugins_registry" "$2" "$1/sys/fs/cgroup"; do
	find "$folder" -name '*dra[.-]numa*' -o -name '*numa-pin*'
done 2>/dev/null
find "$1/sys/fs/cgroup" -name cpuset.cpus.partition 2>/dev/null | while read -r file; do
	state=member
	read -r state 2>/dev/null <"$file"
	case $state in member*) ;; *) echo "$file:$state" ;; esac
done
exit 0`

// initRoot is the node's file system in the observer.
const initRoot = "/proc/1/root"

// The node's cgroup v2 tree, and the cgroup in it that Block makes.
const (
	cgroupFolder  = "/sys/fs/cgroup"
	cgroupRoot    = initRoot + cgroupFolder
	blockerCgroup = cgroupRoot + "/dra-numa-test-blocker"
)

// Block makes a cgroup of its own, outside every pod, that holds the CPUs in a remote
// partition, as another tool on the node might, and checks that the kernel granted it. (A
// partition right below the root would not do: its CPUs may not be in a sibling's
// cpuset.cpus, and the kubelet sets kubepods'.) No claim may be held on the node: what
// earlier claims left exclusive on their ancestors, which would refuse the partition, is
// cleared.
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

// SetClock sets the node's clock, to the second.
func (o *Observer) SetClock(ctx context.Context, now time.Time) error {
	_, err := o.Run(ctx, `date -s "@$1" >/dev/null`, strconv.FormatInt(now.Unix(), 10))
	return err
}

// Systemd reports whether systemd is what runs as PID 1 of the node.
func (o *Observer) Systemd(ctx context.Context) (bool, error) {
	name, err := o.Run(ctx, "cat /proc/1/comm")
	return strings.TrimSpace(name) == "systemd", err
}

// Usage is what a process has of the node.
type Usage struct {
	MemoryBytes int64         // resident, counted: proc_pid_status(5) is off by some MiB
	CPU         time.Duration // since it started, for itself and in the kernel
}

// Usage returns the usage of the process that KillCommand would find; more than one is
// an error.
func (o *Observer) Usage(ctx context.Context, name, argument string) (used Usage, err error) {
	text, err := o.Run(ctx, commandsScript+`for pid in $(commands "$1" "$2"); do
		awk '$1 == "Rss:" { print $2 }' "/proc/$pid/smaps_rollup" && sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 12,13
	done`, name, argument)
	if err != nil {
		return Usage{}, err
	}
	var kib, user, system int64
	if _, err := fmt.Sscan(text, &kib, &user, &system); err != nil || len(strings.Fields(text)) != 3 {
		return Usage{}, fmt.Errorf("usage of %s %s reads %q, want that of one process: %w", name, argument, text, err)
	}
	const ticks = 100 // a second: USER_HZ, see proc_pid_stat(5)
	return Usage{kib << 10, time.Duration(user+system) * time.Second / ticks}, nil
}

// WriteCgroup writes to a file of a cgroup, which is given with a leading slash.
func (o *Observer) WriteCgroup(ctx context.Context, cgroup, file, value string) error {
	return o.WriteFile(ctx, cgroupFolder+cgroup+"/"+file, value)
}

// ReadCgroup returns the first line of a file of a cgroup, which is given with a
// leading slash.
func (o *Observer) ReadCgroup(ctx context.Context, cgroup, file string) (string, error) {
	text, err := o.Run(ctx, `read -r line <"$1/$2" && echo "$line"`, cgroupRoot+cgroup, file)
	return strings.TrimSpace(text), err
}

// SetHugepages sets how many hugepages of 2 MiB a NUMA node has.
func (o *Observer) SetHugepages(ctx context.Context, node, count int) error {
	_, err := o.Run(ctx, `echo "$2" >"/sys/devices/system/node/node$1/hugepages/hugepages-2048kB/nr_hugepages"`,
		strconv.Itoa(node), strconv.Itoa(count))
	return err
}

// Unplug removes a PCI function as if somebody pulled it out.
func (o *Observer) Unplug(ctx context.Context, address string) error {
	return o.WriteFile(ctx, "/sys/bus/pci/devices/"+address+"/remove", "1")
}

// Rescan makes the kernel look for PCI functions again: it finds what Unplug removed.
func (o *Observer) Rescan(ctx context.Context) error {
	return o.WriteFile(ctx, "/sys/bus/pci/rescan", "1")
}

// Link is the PCIe link of a function that was cut.
type Link struct {
	port    string
	command [2]uint64 // bytes of the port's command register
}

// CutLink has the port above a PCI function pass nothing on, in neither direction,
// until MendLink: it clears the port's command register. Mend it when nobody looks at
// the function any more: of a machine whose memory changes while it is used, QEMU 10.0
// fails an assertion now and then.
func (o *Observer) CutLink(ctx context.Context, address string) (Link, error) {
	words, err := o.Run(ctx, `port=$(readlink -f "/sys/bus/pci/devices/$1") && port=$(basename "${port%/*}") && echo "$port" &&
		dd if="$2/sys/bus/pci/devices/$port/config" bs=2 skip=2 count=1 2>/dev/null | od -An -to1`, address, initRoot)
	if err != nil {
		return Link{}, err
	}
	link := Link{}
	if _, err := fmt.Sscanf(strings.Join(strings.Fields(words), " "), "%s %o %o", &link.port, &link.command[0], &link.command[1]); err != nil {
		return Link{}, fmt.Errorf("cut link of PCI function %s: read %q of its port: %w", address, words, err)
	}
	return link, o.setCommand(ctx, link.port, 0, 0)
}

// MendLink undoes CutLink.
func (o *Observer) MendLink(ctx context.Context, link Link) error {
	return o.setCommand(ctx, link.port, link.command[0], link.command[1])
}

// setCommand writes the command register, two bytes at 4.
func (o *Observer) setCommand(ctx context.Context, address string, low, high uint64) error {
	_, err := o.Run(ctx, `printf "$2" | dd of="$3/sys/bus/pci/devices/$1/config" bs=2 seek=2 count=1 conv=notrunc`,
		address, fmt.Sprintf(`\%03o\%03o`, low, high), initRoot)
	return err
}

// ResetDrive resets an NVMe drive. It is an error if the drive does not come back.
func (o *Observer) ResetDrive(ctx context.Context, address string) error {
	_, err := o.Run(ctx, `for reset in "$2/sys/bus/pci/devices/$1"/nvme/*/reset_controller; do echo 1 >"$reset"; done`, address, initRoot)
	return err
}

// WriteFile writes a line to a file of the node's.
func (o *Observer) WriteFile(ctx context.Context, path, line string) error {
	_, err := o.Run(ctx, `echo "$2" >"$1"`, initRoot+path, line)
	return err
}

// List returns the names in a folder as a process sees it: by its command name and first
// argument, and with what is mounted for it.
func (o *Observer) List(ctx context.Context, name, argument, folder string) ([]string, error) {
	out, err := o.Run(ctx, commandsScript+`for pid in $(commands "$1" "$2"); do ls -A "/proc/$pid/root$3" || exit; done`, name, argument, folder)
	return strings.Fields(out), err
}

// Append opens a file as a process sees it, to write at its end, and writes nothing. It
// returns what the kernel says against that: "" if it permits it. That the mount is
// read-only counts for the observer as well, whatever its rights.
func (o *Observer) Append(ctx context.Context, name, argument, path string) (refusal string, err error) {
	out, err := o.Run(ctx, commandsScript+`for pid in $(commands "$1" "$2"); do
		(: >>"/proc/$pid/root$3") 2>&1
	done; exit 0`, name, argument, path)
	out = strings.TrimSpace(out)
	return out[strings.LastIndex(out, ": ")+1:], err
}

// SetOnline brings CPUs online or takes them offline. One that is so already is no error.
func (o *Observer) SetOnline(ctx context.Context, cpus cpuset.Set, online bool) error {
	args := []string{"0"}
	if online {
		args[0] = "1"
	}
	for cpu := range cpus.All() {
		args = append(args, strconv.Itoa(cpu))
	}
	_, err := o.Run(ctx, `online=$1; shift
		for cpu; do echo "$online" >"/sys/devices/system/cpu/cpu$cpu/online" || exit; done`, args...)
	return err
}

// SetCPUManager changes the policy of the kubelet's CPU manager, in the
// configuration file that the rig's kubelet reads, and restarts the kubelet: it
// returns the process that is killed, see [Observer.KillCommand].
func (o *Observer) SetCPUManager(ctx context.Context, from, to string) (pids []string, err error) {
	_, err = o.Run(ctx, `cd /proc/1/root/var/lib/kubelet &&
		sed -i "s/^cpuManagerPolicy: $1$/cpuManagerPolicy: $2/" config.yaml && grep -q "^cpuManagerPolicy: $2$" config.yaml &&
		rm -f cpu_manager_state`, from, to)
	if err != nil {
		return nil, fmt.Errorf("set CPU manager policy %s: %w", to, err)
	}
	return o.KillCommand(ctx, "kubelet", "")
}
