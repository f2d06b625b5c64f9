package driver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// replug replaces the PCI functions of the disk's machine.
func (d *disk) replug(functions ...fake.Function) {
	d.t.Helper()
	machine := pciMachine(d.t)
	machine.PCI = functions
	if err := errors.Join(os.RemoveAll(d.root), os.Mkdir(d.root, 0o755)); err != nil {
		d.t.Fatal(err)
	}
	if err := machine.Write(d.root); err != nil {
		d.t.Fatal(err)
	}
	var err error
	if d.machine, err = numa.Read(os.DirFS(d.root)); err != nil {
		d.t.Fatal(err)
	}
}

// specOf returns the names of the devices in the spec of a claim and the paths of nodes.
func specOf(t *testing.T, d disk, uid types.UID) (text string) {
	t.Helper()
	written, err := cdi.ReadSpecs(d.specs.FS())
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range written {
		for _, device := range spec.Devices {
			if spec.ClaimUID == string(uid) {
				text += strings.TrimPrefix(device.ID, "dra.numa/claim="+string(uid)+"_") + " " + strings.Join(device.Nodes, ",") + ";"
			}
		}
	}
	return text
}

// A drive is pulled, and another takes its name and its numbers. The claim of the first one
// still runs, and so its containers may open these numbers. They are given to no other claim,
// and a container of the first claim that starts again does not get the second drive.
func TestADriveWithTheNumbersOfAnotherIsNotGiven(t *testing.T) {
	const driveC = "nvme-0001-25-00-0"
	disk := pciDisk(t)
	running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
	driver := disk.openWith(watched(running))
	mustPrepare(t, driver, reserved(claim("a", functionResult("r", driveA)), "pod-1"))
	if got, want := specOf(t, disk, "uid-a"), "r_"+driveA+" /dev/nvme0,/dev/nvme0n1;"; got != want {
		t.Errorf("spec %q, want %q", got, want)
	}
	disk.replug(fake.NVMe("0001:25:00.0", 2, 0), fake.NVMe("0001:23:00.0", 1, 1))
	driver.SetMachine(disk.machine)
	another := claim("b", functionResult("r", driveC))
	for range 2 {
		if _, _, err := driver.Prepare(another, nil); err == nil || !strings.Contains(err.Error(), "its device nodes may be open in containers: claim default/a has PCI function 0001:21:00.0") {
			t.Errorf("the drive with the numbers of another: error %v", err)
		}
		if got, want := specOf(t, disk, "uid-a"), "r_"+driveA+"_lost ;"; got != want {
			t.Errorf("spec %q, want %q", got, want)
		}
		driver = disk.openWith(watched(running)) // another daemon knows as much
	}
	assertConsistent(t, disk, driver)
	if problems := driver.Publish(sound, driver.Blocked()).Problems[driveA]; len(problems) != 1 || !strings.Contains(problems[0], "is gone") {
		t.Errorf("problems %q, want that it is gone", problems)
	}

	// Its containers have ended: the numbers are free.
	running.Pods["pod-1"] = false
	mustPrepare(t, driver, another)
	// The first drive comes back under other numbers.
	disk.replug(fake.NVMe("0001:25:00.0", 2, 0), fake.NVMe("0001:21:00.0", 0, 3))
	driver.SetMachine(disk.machine)
	news, err := driver.RereadFunctions()
	if err != nil || len(news) != 1 || !strings.HasPrefix(news[0], "PCI function 0001:21:00.0 of claim default/a: its device nodes are /dev/nvme3 (c240:3)") {
		t.Errorf("news %q, %v", news, err)
	}
	if got, want := specOf(t, disk, "uid-a"), "r_"+driveA+" /dev/nvme3,/dev/nvme3n1;"; got != want {
		t.Errorf("spec %q, want %q", got, want)
	}
	if news, err := driver.RereadFunctions(); err != nil || len(news) > 0 {
		t.Errorf("news %q, %v of nothing", news, err)
	}
	assertConsistent(t, disk, driver)
}

// A slot has a GPU where a drive was. The claim of the drive gets nothing of it: not while the
// node runs, and not after a boot that has numbered the buses in another way.
func TestAnotherKindOfDeviceIsNotGiven(t *testing.T) {
	const gpuA = "gpu-0001-21-00-0"
	disk := pciDisk(t)
	running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
	driver := disk.openWith(watched(running))
	wanted := reserved(claim("a", functionResult("r", driveA)), "pod-1")
	mustPrepare(t, driver, wanted)
	disk.replug(fake.MI300X("0001:21:00.0", 0, 0))
	refused := func(when string) {
		t.Helper()
		if _, _, err := driver.Prepare(wanted, nil); err == nil || !strings.Contains(err.Error(), "PCI function 0001:21:00.0: this node does not publish it") {
			t.Errorf("%s: error %v", when, err)
		}
	}
	refused("before the machine was read again")
	for range 2 {
		if _, err := driver.RereadFunctions(); err != nil {
			t.Fatal(err)
		}
		if got, want := specOf(t, disk, "uid-a"), "r_"+driveA+"_lost ;"; got != want {
			t.Errorf("spec %q, want %q", got, want)
		}
		driver.SetMachine(disk.machine)
		refused("in the same boot")
		assertGone(t, driver, driveA)
		if problems := driver.Publish(sound, driver.Blocked()).Problems[driveA]; len(problems) != 1 || !strings.Contains(problems[0], "is gone") {
			t.Errorf("problems %q, want that it is gone", problems)
		}
		assertConsistent(t, disk, driver)
		driver = disk.openWith(watched(running)) // another daemon knows as much
	}
	driver = disk.openAfterBoot()
	if _, held := driver.Grant("uid-a"); held {
		t.Error("after a boot, the claim holds a device of another kind")
	}
	refused("after a boot")
	mustPrepare(t, driver, claim("b", functionResult("r", gpuA)))
}

// An interface that is in the network namespace of a pod is not seen on the host, and is still
// the claim's.
func TestInterfacesFollowTheirNames(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.open()
	granted := mustPrepare(t, driver, claim("a", functionResult("r", card)))
	names := func() string {
		pinned, _ := driver.Pinned(granted[0].CDIDeviceIDs)
		return strings.Join(pinned.Environment(), " ")
	}
	for _, row := range []struct{ name, news, want string }{
		{"ens9", "PCI function 0001:31:00.0 of claim default/a: its network interfaces are ens9 now", "DRA_NUMA_PCI=0001:31:00.0 DRA_NUMA_INTERFACES=ens9"},
		{"", "", "DRA_NUMA_PCI=0001:31:00.0 DRA_NUMA_INTERFACES=ens9"},
		{"ens9", "", "DRA_NUMA_PCI=0001:31:00.0 DRA_NUMA_INTERFACES=ens9"},
	} {
		functions := pciMachine(t).PCI
		for i := range functions {
			if functions[i].Address == "0001:31:00.0" {
				functions[i].Children = nil
				if row.name != "" {
					functions[i].Children = []string{"net/" + row.name}
				}
			}
		}
		disk.replug(functions...)
		news, err := driver.RereadFunctions()
		if got := strings.Join(news, "; "); err != nil || got != row.news {
			t.Errorf("interface %q: news %q, %v, want %q", row.name, got, err, row.news)
		}
		if got := names(); got != row.want {
			t.Errorf("interface %q: environment %s, want %s", row.name, got, row.want)
		}
	}
	assertConsistent(t, disk, driver)
}

// Virtual functions are made anew and get each other's numbers. Containers of both claims may
// have both, so none starts again until one claim has ended.
func TestFunctionsThatSwapNumbersStartNothing(t *testing.T) {
	disk := pciDisk(t)
	running := &Containers{Pods: map[types.UID]bool{"pod-a": true, "pod-b": true}, AllPods: true}
	driver := disk.openWith(watched(running))
	mustPrepare(t, driver, reserved(claim("a", functionResult("r", driveA)), "pod-a"))
	mustPrepare(t, driver, reserved(claim("b", functionResult("r", driveB)), "pod-b"))
	disk.replug(fake.NVMe("0001:21:00.0", 0, 1), fake.NVMe("0001:23:00.0", 1, 0))
	driver.SetMachine(disk.machine)
	for range 3 {
		if _, err := driver.RereadFunctions(); err != nil {
			t.Fatal(err)
		}
		for uid, drive := range map[types.UID]string{"uid-a": driveA, "uid-b": driveB} {
			if got, want := specOf(t, disk, uid), "r_"+drive+"_lost ;"; got != want {
				t.Errorf("spec %q, want %q", got, want)
			}
		}
	}
	running.Pods["pod-b"] = false
	if err := driver.Unprepare("uid-b"); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.RereadFunctions(); err != nil {
		t.Fatal(err)
	}
	if got, want := specOf(t, disk, "uid-a"), "r_"+driveA+" /dev/nvme1,/dev/nvme1n1;"; got != want {
		t.Errorf("spec %q, want %q", got, want)
	}
	assertConsistent(t, disk, driver)
}

// After a boot, device nodes have other numbers, and no container runs that has the old ones.
func TestNodesOfAnotherBootAreForgotten(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.openWith(watched(&Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}))
	mustPrepare(t, driver, reserved(claim("a", functionResult("r", driveA)), "pod-1"))
	disk.replug(fake.NVMe("0001:21:00.0", 0, 1), fake.NVMe("0001:23:00.0", 1, 0))
	driver = disk.openAfterBoot()
	f := grantOf(driver, "uid-a").Shares[0].Function()
	if len(f.Former) > 0 || f.Lost || len(f.Nodes) != 2 || f.Nodes[0].Path != "/dev/nvme1" {
		t.Errorf("on record is %+v, want the new nodes", f)
	}
	mustPrepare(t, driver, claim("b", functionResult("r", driveB)))
}

// Another program names its CDI devices by an index, and the index is another card's now.
func TestTheIndexOfAnotherCardIsNotUsed(t *testing.T) {
	disk := pciDisk(t)
	write := func(zero, one string) {
		t.Helper()
		text := `{"cdiVersion":"0.6.0","kind":"amd.com/gpu","devices":[
			{"name":"0","containerEdits":{"deviceNodes":[{"path":"` + zero + `"}]}},{"name":"1","containerEdits":{"deviceNodes":[{"path":"` + one + `"}]}}]}`
		if err := disk.specs.WriteFile("amd.json", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("/dev/dri/card0", "/dev/dri/card7")
	driver := disk.open()
	mustPrepare(t, driver, claim("a", functionResult("gpu", gpu)))
	if f := grantOf(driver, "uid-a").Shares[0].Function(); f.CDIDevice != "amd.com/gpu=0" {
		t.Fatalf("on record is %+v", f)
	}
	write("/dev/dri/card7", "/dev/dri/card0")
	if _, err := driver.RereadFunctions(); err != nil {
		t.Fatal(err)
	}
	if got, want := specOf(t, disk, "uid-a"), "gpu_"+gpu+"_lost ;"; got != want {
		t.Errorf("spec %q, want %q", got, want)
	}
	if fault := grantOf(driver, "uid-a").Shares[0].Fault(&disk.machine); !strings.Contains(fault, "no container of the claim can start") {
		t.Errorf("fault %q", fault)
	}
	write("/dev/dri/card0", "/dev/dri/card7")
	if _, err := driver.RereadFunctions(); err != nil || grantOf(driver, "uid-a").Shares[0].Function().Lost {
		t.Errorf("%v: still lost", err)
	}
}

// The driver of a claim is not bound for a moment: what is on record stays.
func TestAFunctionWithoutItsDriverIsNotReread(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, vfio(claim("a", functionResult("drive", driveA))))
	before := grantOf(driver, "uid-a")
	if err := disk.kernel.Write("sys/bus/pci/devices/0001:21:00.0/driver/unbind", "0001:21:00.0"); err != nil {
		t.Fatal(err)
	}
	if news, err := driver.RereadFunctions(); err != nil || len(news) > 0 || !grantOf(driver, "uid-a").Equal(before) {
		t.Errorf("news %q, %v", news, err)
	}
}
