package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/cluster/topology"
)

const qemu = "qemu-system-x86_64"

// Boot is what a virtual machine starts from.
type Boot struct {
	Vmlinuz, Initramfs string
	Self               string // the program whose "machine" command is RunMachine
	Accelerator        Accelerator
}

// Accelerator is how QEMU runs the guest's instructions.
type Accelerator string

// The accelerators that a rig uses.
const (
	KVM Accelerator = "kvm" // hardware virtualization
	TCG Accelerator = "tcg" // software emulation
)

func (a Accelerator) args() []string {
	if a == KVM {
		return []string{"-accel", "kvm", "-cpu", "host,l3-cache=on"}
	}
	// The vendor decides how the kernel reads CPUID: Intel's leaf 4 gives every die its L3. Leaf 0x1f, which would name the
	// dies, is cut off: emulation in QEMU 10.0 asserts in encode_topo_cpuid1f as soon as firmware reads it.
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel,l3-cache=on,level=0x1e"}
}

// PickAccelerator boots the machine's own kernel with hardware virtualization and takes it only when the guest speaks within 20 s:
// nested virtualization may be offered and hang. The answer is kept in a file for as long as the host runs.
func PickAccelerator(ctx context.Context, machine topology.Topology, b Boot, cache string) (Accelerator, error) {
	bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(bootID))
	if kept, err := os.ReadFile(cache); err == nil {
		if id, answer, _ := strings.Cut(string(kept), " "); id == key {
			return Accelerator(answer), nil
		}
	}
	answer := TCG
	if file, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
		_ = file.Close()
		if boots(ctx, machine, b) {
			answer = KVM
		}
	}
	return answer, os.WriteFile(cache, []byte(key+" "+string(answer)), 0o600)
}

func boots(ctx context.Context, machine topology.Topology, b Boot) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args := append(KVM.args(), machine.QEMUArgs()...)
	args = append(args, "-nic", "none", "-kernel", b.Vmlinuz, "-initrd", b.Initramfs, "-append", "console=ttyS0 panic=-1 rig.probe",
		"-display", "none", "-monitor", "none", "-no-reboot", "-serial", "stdio")
	out, _ := exec.CommandContext(ctx, qemu, args...).Output()
	return strings.Contains(string(out), "RIG-PROBE-OK")
}

// startMachine starts a node's virtual machine and returns at once. Like a guest that sees KVM, the kernel is told not to check
// that timer interrupts arrive: on a busy host the emulated ones come late, and it would stop. Mitigations against
// speculation are off: page-table isolation costs an emulated machine its translations at every system call.
//
// A guest that restarts ends its QEMU, for now and then the emulated machine loses a timer in a reset: RunMachine starts it anew
// with the same disk.
func (r *Rig) startMachine(n Node, machine topology.Topology, b Boot, disk string) error {
	dir := r.Path("nodes", n.Name)
	args := append([]string{qemu, "-name", n.Name}, b.Accelerator.args()...)
	args = append(args, machine.QEMUArgs()...)
	args = append(args,
		"-drive", "file="+disk+",if=none,id=root,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=root,bus=pcie.0",
		"-netdev", fmt.Sprintf("user,id=net0,net=10.101.%d.0/24,host=%s,hostfwd=tcp:127.0.0.1:%d-%s:9000", n.Subnet, n.Gateway(), n.AgentPort, n.Address()),
		"-device", "virtio-net-pci,netdev=net0,bus=pcie.0,romfile=",
		"-kernel", b.Vmlinuz, "-initrd", b.Initramfs, "-append", "console=ttyS0 quiet no_timer_check nowatchdog mitigations=off panic=-1",
		"-display", "none", "-monitor", "none", "-no-reboot",
		"-chardev", "socket,id=console,path="+filepath.Join(dir, "console.sock")+",server=on,wait=off,logappend=on,logfile="+r.Console(n), "-serial", "chardev:console")
	return r.start(10+n.Subnet, n.Name, append([]string{b.Self, "machine", "--"}, args...)...)
}

// RunMachine runs QEMU again whenever it ends well, until the context is done, when it is told to stop, or it fails. It does not
// outlive us.
func RunMachine(ctx context.Context, args ...string) error {
	runtime.LockOSThread() // which the child's life hangs on
	for {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		err := cmd.Run()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", args[0], err)
		}
	}
}

// Console is the file with everything that a node printed on its console.
func (r *Rig) Console(n Node) string { return r.Path("logs", n.Name+"-console.log") }

// tail is the end of a text file, for an error message or a person.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
