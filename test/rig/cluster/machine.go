package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/topology"
)

// qemu is the host's own QEMU. It runs all machines without RDT.
const qemu = "qemu-system-x86_64"

// Boot is what a virtual machine starts from.
type Boot struct {
	Vmlinuz, Initramfs string
	QEMU               []string // the command of the QEMU for machines with RDT; nil for others
	Self               string   // the program whose "machine" command is RunMachine
	Accelerator        Accelerator
	Parameters         string // of the kernel, besides those that the rig needs
}

func (b Boot) command() []string {
	if len(b.QEMU) > 0 {
		return b.QEMU
	}
	return []string{qemu}
}

// Accelerator is how QEMU runs the guest's instructions.
type Accelerator string

// The accelerators that a rig uses.
const (
	KVM Accelerator = "kvm" // hardware virtualization
	TCG Accelerator = "tcg" // software emulation
)

func (a Accelerator) args(machine topology.Topology) []string {
	if a == KVM {
		return []string{"-accel", "kvm", "-cpu", "host,l3-cache=on"}
	}
	// The vendor decides how the kernel reads CPUID: Intel's leaf 4 gives every die its
	// L3. Leaf 0x1f, which would name the dies, is cut off: emulation in QEMU 10.0
	// asserts in encode_topo_cpuid1f as soon as firmware reads it.
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel,l3-cache=on,level=0x1e" + machine.CPUProperties()}
}

// iommuArgs are the IOMMU of a machine, and what its kernel is told of it. An emulated
// machine (QEMU 10.0) always has one that remaps interrupts, as only with it the kernel
// has x2APICs. With APICs, now and then the end of a timer's interrupt was lost while PCI
// functions were found: that CPU had no timers from then on. It was so in 6 of 14 boots
// of topology devices.yaml, and with x2APICs in 1 of 17.
func (a Accelerator) iommuArgs(machine topology.Topology) (args []string, kernel string) {
	switch {
	case a == TCG && machine.IOMMU:
		return []string{"-device", "intel-iommu,intremap=on,eim=on"}, "intel_iommu=on"
	case a == TCG:
		return []string{"-device", "intel-iommu,intremap=on,eim=on"}, "intel_iommu=off"
	case machine.IOMMU:
		return []string{"-device", "virtio-iommu-pci,bus=pcie.0"}, ""
	}
	return nil, ""
}

// emulated is what the kernel of an emulated machine is told besides.
//
// x2apic_phys: CPUs send each other interrupts by APIC id. By logical destination, QEMU
// (up to 10.0.13) loses those for CPUs from 8 on while a CPU with a lower number has not
// started: apic_get_delivery_bitmask cuts the destination to the 8 bits of that CPU's APIC.
// Linux starts one CPU of each core first, and meanwhile waits for all that run, as for RCU:
// nodes of Linux 7.2 hung there ("rcu_preempt detected expedited stalls").
//
// lpj: Linux 7.2 does not know that the TSC of QEMU's processor is constant, so it would
// measure for each CPU how long a loop takes: up to 250 ms, and on a busy host ten times
// that. The number is that of a TSC of 4 GHz and 250 ticks a second; with a slower TSC, the
// kernel's short delays are longer.
const emulated = "x2apic_phys lpj=16000000"

// PickAccelerator boots the machine's own kernel with hardware virtualization and takes
// it only when the guest speaks within 20 s: nested virtualization may be offered and
// hang. The answer is kept in a file for as long as the host runs. RDT is emulated, and so is
// everything on a host without /dev/kvm.
func PickAccelerator(ctx context.Context, machine topology.Topology, b Boot, cache string) (Accelerator, error) {
	if machine.RDT != nil {
		return TCG, nil
	}
	kvm, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return TCG, nil
	}
	_ = kvm.Close()
	bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return probed(ctx, cache, strings.TrimSpace(string(bootID)), func() bool { return boots(ctx, machine, b) })
}

// probed returns the answer in the file if it is of this boot of the host, else that of the
// probe, which it keeps unless the probe was interrupted.
func probed(ctx context.Context, cache, bootID string, probe func() bool) (Accelerator, error) {
	if kept, err := os.ReadFile(cache); err == nil {
		if id, answer, _ := strings.Cut(string(kept), " "); id == bootID {
			return Accelerator(answer), nil
		}
	}
	answer := TCG
	if probe() {
		answer = KVM
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return answer, os.WriteFile(cache, []byte(bootID+" "+string(answer)), 0o600)
}

func boots(ctx context.Context, machine topology.Topology, b Boot) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args := append(KVM.args(machine), machine.QEMUArgs()...)
	args = append(args, "-nic", "none", "-kernel", b.Vmlinuz, "-initrd", b.Initramfs, "-append", "console=ttyS0 panic=-1 rig.probe",
		"-display", "none", "-monitor", "none", "-no-reboot", "-serial", "stdio")
	out, _ := exec.CommandContext(ctx, qemu, args...).Output()
	return strings.Contains(string(out), "RIG-PROBE-OK")
}

// startMachine starts a node's virtual machine and returns at once. Like a guest that
// sees KVM, the kernel is told not to check that timer interrupts arrive: on a busy host
// the emulated ones come late, and it would stop. Nor is it to check the clock: twice a
// second, Linux 7.2 has two CPUs wait for each other, with interrupts off, and looks at the
// time only after 5,000 rounds (watchdog_check_skew_remote of kernel/time/clocksource.c).
// That takes an emulated machine of a busy host so long that it does nothing else.
// Its addresses are those of its System.map, for [Cluster.positions].
// Mitigations against speculation are off: page-table isolation costs an emulated machine
// its translations at every system call.
func (r *Cluster) startMachine(n Node, machine topology.Topology, b Boot, disk string) error {
	dir := r.Path("nodes", n.Name)
	iommu, kernel := b.Accelerator.iommuArgs(machine)
	if b.Accelerator == TCG {
		kernel += " " + emulated
	}
	args := slices.Concat(b.command(), []string{"-name", n.Name}, b.Accelerator.args(machine), iommu, machine.QEMUArgs())
	args = append(args,
		"-drive", "file="+disk+",if=none,id=root,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=root,bus=pcie.0",
		"-netdev", fmt.Sprintf("user,id=net0,net=10.101.%d.0/24,host=%s,hostfwd=tcp:127.0.0.1:%d-%s:9000", n.Subnet, n.Gateway(), n.AgentPort, n.Address()),
		"-device", "virtio-net-pci,netdev=net0,bus=pcie.0,romfile=",
		"-kernel", b.Vmlinuz, "-initrd", b.Initramfs, "-append", "console=ttyS0 quiet no_timer_check tsc=reliable nowatchdog mitigations=off panic=-1 rcupdate.rcu_expedited=1 nokaslr "+kernel+" "+b.Parameters,
		"-display", "none", "-monitor", "none", "-qmp", "unix:"+r.monitorSocket(n)+",server=on,wait=off", "-no-reboot",
		"-chardev", "socket,id=console,path="+filepath.Join(dir, "console.sock")+",server=on,wait=off,logappend=on,logfile="+r.Console(n), "-serial", "chardev:console")
	tables, err := r.tableArgs(n, machine)
	if err != nil {
		return err
	}
	args = append(args, tables...)
	return r.start(machineOrder(n), n.Name, append([]string{b.Self, "machine", r.Dir, n.Name}, args...)...)
}

// tableArgs are the table of a machine with P-states, and its second serial port, which the
// table names. The first one is the console.
func (r *Cluster) tableArgs(n Node, machine topology.Topology) ([]string, error) {
	table := machine.PStateTable()
	if table == nil {
		return nil, nil
	}
	file := r.Path("nodes", n.Name, "pstates.aml")
	return []string{"-serial", "null", "-acpitable", "file=" + file}, os.WriteFile(file, table, 0o600)
}

const (
	bootAttempts = 3
	bootTime     = 150 * time.Second // of the first attempt, at pace 1; each that follows has as much more
	answerTime   = 10 * time.Second  // of a node's agent
	endTime      = 3 * time.Second   // of a QEMU that is told to end
	consoleEnd   = 30                // lines: a kernel that panics prints about as many
)

// RunMachine runs a node's virtual machine until the context is done, which is no error.
// Its QEMU ends when the guest restarts, for now and then the emulated machine loses a
// timer in a reset; it crashes now and then; and the guest may not boot. It is started
// again each time, with the same disk, until it has not booted bootAttempts times in a row.
func (r *Cluster) RunMachine(ctx context.Context, n Node, args ...string) error {
	return r.runMachine(ctx, n, r.pace(), args)
}

func (r *Cluster) runMachine(ctx context.Context, n Node, pace float64, args []string) error {
	runtime.LockOSThread() // which the child's life hangs on
	failed := 0
	for {
		booted, err := r.runOnce(ctx, n, float64(failed+1)*pace, args)
		switch {
		case ctx.Err() != nil:
			return nil
		case booted:
			failed = 0
		default:
			failed++
		}
		r.logf("%s: %s has ended, guest booted: %t, error: %v; end of the console:\n%s", n.Name, args[0], booted, err, tail(r.Console(n), consoleEnd))
		if failed == bootAttempts {
			return fmt.Errorf("run %s: the guest has not booted %d times", args[0], failed)
		}
	}
}

// runOnce runs QEMU until it ends, or the guest hangs before it has booted, or has not
// booted in time: its kubelet is not healthy. QEMU does not outlive us.
func (r *Cluster) runOnce(ctx context.Context, n Node, pace float64, args []string) (booted bool, err error) {
	console := openConsole(r.Console(n), time.Now())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = r.Log, r.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	if err := cmd.Start(); err != nil {
		return false, err
	}
	go hold(ctx, cmd.Process, r.Speed)
	go r.keepAwake(ctx, n)
	answered := make(chan bool, 1)
	go func() {
		within := times(bootTime, pace)
		var hangs error
		err := eventually(within, 500*time.Millisecond, func() error {
			if ctx.Err() != nil {
				return nil
			}
			sick := r.healthy(ctx, n)
			if sick == nil {
				return nil
			}
			if hangs = console.hangs(time.Now(), pace); hangs != nil {
				r.logf("%s: where its CPUs are: %s", n.Name, r.positions(ctx, n))
				return nil
			}
			return sick
		})
		if err != nil {
			err = fmt.Errorf("not healthy within %s: %w", within, err)
		}
		if err = cmp.Or(hangs, err); err != nil {
			stop(err)
		}
		answered <- err == nil && ctx.Err() == nil
	}()
	err = cmd.Wait()
	why := context.Cause(ctx) // QEMU was told to end, if anything
	stop(nil)
	return <-answered, cmp.Or(why, err)
}

// healthy is an error as long as a node's kubelet says that it is not, or nothing.
func (r *Cluster) healthy(ctx context.Context, n Node) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime) // QEMU accepts connections before a program takes them
	defer cancel()
	code, err := r.Exec(ctx, n, strings.NewReader(""), io.Discard, "/bin/busybox", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:10248/healthz")
	if err == nil && code != 0 {
		err = errors.New("the kubelet does not say that it is healthy")
	}
	return err
}

// Console is the file with everything that a node printed on its console.
func (r *Cluster) Console(n Node) string { return r.Path("logs", n.Name+"-console.log") }

// tail is the end of a text file, for an error message or a person.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
