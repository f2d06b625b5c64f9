package resctrlfs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// TestKernelAnswersAsRecorded asks the kernel that it runs on, as root in a virtual
// machine that [Rig] describes. With -update it records the answers.
//
//	CGO_ENABLED=0 go test -c -o resctrl.test ./test/resctrlfs
//	NUMA_RESCTRL=cache-is-node ./resctrl.test -test.run TestKernelAnswersAsRecorded
//
// NUMA_RESCTRL names the machine; the folder has testdata. The test mounts resctrl again
// for each script, so nothing else may use it.
func TestKernelAnswersAsRecorded(t *testing.T) {
	want := os.Getenv("NUMA_RESCTRL")
	if want == "" {
		t.Skip("NUMA_RESCTRL names no machine; it runs in a virtual one")
	}
	for _, machine := range machines {
		if machine.name != want {
			continue
		}
		got := answers(t, machine.caches, func() system { return mountKernel(t) })
		files.Golden(t, recording(kernelVersion(t), machine.name), got)
		return
	}
	t.Fatalf("NUMA_RESCTRL=%s: want one of %v", want, machines)
}

func kernelVersion(t *testing.T) string {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	minor, _, _ := strings.Cut(parts[1], "-")
	return parts[0] + "." + minor
}

const mountPoint = "/sys/fs/resctrl"

// kernel is the mount of the kernel that the test runs on.
type kernel struct {
	fs.FS
	t *testing.T
}

// mountKernel mounts resctrl, after the mount that the previous script used.
func mountKernel(t *testing.T) kernel {
	t.Helper()
	_ = unix.Unmount(mountPoint, 0)
	k := kernel{os.DirFS(mountPoint), t}
	k.settle()
	if err := unix.Mount("resctrl", mountPoint, "resctrl", 0, ""); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k kernel) Mkdir(name string) error {
	return syscall.Mkdir(filepath.Join(mountPoint, name), 0o755)
}
func (k kernel) Rmdir(name string) error { return syscall.Rmdir(filepath.Join(mountPoint, name)) }

func (k kernel) Rename(from, to string) error {
	return syscall.Rename(filepath.Join(mountPoint, from), filepath.Join(mountPoint, to))
}

func (k kernel) Write(name, text string) error {
	fd, err := syscall.Open(filepath.Join(mountPoint, name), syscall.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = syscall.Write(fd, []byte(text))
	_ = syscall.Close(fd)
	return err
}

func (k kernel) setOnline(cpu int, online bool) error {
	value := map[bool]string{false: "0", true: "1"}[online]
	return os.WriteFile("/sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/online", []byte(value), 0)
}

func (k kernel) start() int {
	k.t.Helper()
	task := exec.Command("sleep", "100000")
	if err := task.Start(); err != nil {
		k.t.Fatal(err)
	}
	return task.Process.Pid
}

func (k kernel) end(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
}

func (k kernel) groups(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cpu_resctrl_groups")
	if err != nil {
		k.t.Fatal(err)
	}
	return string(text)
}

// settle waits for more than the kernel's own period of a second; emulated machines are
// slow.
func (k kernel) settle() { time.Sleep(8 * time.Second) }
