package driver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// The PCI functions of pciDisk, by their device names.
const (
	driveA   = "nvme-0001-21-00-0"
	driveB   = "nvme-0001-23-00-0"
	card     = "nic-0001-31-00-0"
	virtualA = "nic-0001-31-00-1" // of card, bound to VFIO like the next one
	virtualB = "nic-0001-31-00-2"
	gpu      = "gpu-0001-41-00-0"
)

// pciDisk returns a disk with the rig's machine, whose PCI functions are read from a
// folder.
func pciDisk(t testing.TB) disk {
	t.Helper()
	disk := newDisk(t)
	disk.root = t.TempDir()
	if err := pciMachine(t).Write(disk.root); err != nil {
		t.Fatal(err)
	}
	disk.publish(os.DirFS(disk.root))
	return disk
}

func pciMachine(t testing.TB) fake.Machine {
	t.Helper()
	machine := sample.Preset(t, "rig")
	machine.IOMMU = true
	machine.PCI = append(slices.Clone(machine.PCI),
		fake.NVMe("0001:21:00.0", 0, 0), fake.NVMe("0001:23:00.0", 1, 1),
		fake.ConnectX("0001:31:00.0", 2, "ens1", 0, 2), fake.MI300X("0001:41:00.0", 3, 0))
	return machine
}

// publish makes the disk have the machine in these files, with all of its functions
// selected.
func (d *disk) publish(files fs.FS) {
	d.t.Helper()
	var err error
	if d.machine, err = numa.Read(files); err != nil {
		d.t.Fatal(err)
	}
	if d.selected, err = attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{"true"}}); err != nil {
		d.t.Fatal(err)
	}
}

// plug makes a function appear or disappear.
func (d disk) plug(address string, there bool) {
	d.t.Helper()
	link := filepath.Join(d.root, "sys/bus/pci/devices", address)
	from, to := link, filepath.Join(d.root, "unplugged-"+address)
	if there {
		from, to = to, link
	}
	if err := os.Rename(from, to); err != nil {
		d.t.Fatal(err)
	}
}

func functionResult(request, device string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Request: request, Driver: Name, Pool: node, Device: device}
}

func TestAClaimGetsTheNodesOfItsFunctions(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.open()
	before := disk.files()
	wanted := claim("a", result("cpus", "numa-1", 2), functionResult("drive", driveB), functionResult("cards", virtualA), functionResult("cards", virtualB))
	prepared := mustPrepare(t, driver, wanted)
	nodes := func(paths ...string) (nodes []devnode.Node) {
		numbers := map[string]devnode.Node{
			"/dev/nvme1": {Type: "c", Major: 240, Minor: 1}, "/dev/nvme1n1": {Type: "b", Major: 259, Minor: 32}, "/dev/vfio/vfio": {Type: "c", Major: 10, Minor: 196},
			"/dev/vfio/devices/vfio0": {Type: "c", Major: 244, Minor: 0}, "/dev/vfio/devices/vfio1": {Type: "c", Major: 244, Minor: 1},
		}
		for _, path := range paths {
			node := numbers[path]
			node.Path = path
			nodes = append(nodes, node)
		}
		return nodes
	}
	want := []ledger.FunctionShare{
		{}, // the share of the zone
		{Address: "0001:23:00.0", Kind: deviceclasses.KindNVMe, Nodes: nodes("/dev/nvme1", "/dev/nvme1n1")},
		{Address: "0001:31:00.1", Kind: deviceclasses.KindNIC, PhysFn: "0001:31:00.0", Nodes: nodes("/dev/vfio/devices/vfio0", "/dev/vfio/vfio")},
		{Address: "0001:31:00.2", Kind: deviceclasses.KindNIC, PhysFn: "0001:31:00.0", Nodes: nodes("/dev/vfio/devices/vfio1", "/dev/vfio/vfio")},
	}
	for i, device := range prepared {
		var got ledger.FunctionShare
		if function := device.Share.Function(); function != nil {
			got = *function
		}
		group := func(n devnode.Node) bool { return n.Major == 243 } // the made-up machine chooses its number
		if i > 1 && !slices.ContainsFunc(got.Nodes, group) {
			t.Errorf("%s has no node of an IOMMU group: %+v", device.Device, got.Nodes)
		}
		got.Nodes = slices.DeleteFunc(slices.Clone(got.Nodes), group)
		if diff := cmp.Diff(&want[i], &got, cmp.Comparer(func(a, b *ledger.FunctionShare) bool { return a.Equal(b) })); diff != "" || i > 0 && (!device.Share.Mems().IsEmpty() || len(device.CDIDeviceIDs) != 1) {
			t.Errorf("%s: CDI devices %v, function (-want +got):\n%s", device.Device, device.CDIDeviceIDs, diff)
		}
	}
	if bus := prepared[1].Attributes["resource.kubernetes.io/pciBusID"].StringValue; bus == nil || *bus != "0001:23:00.0" || prepared[1].Attributes["dra.numa/cpus"].StringValue != nil ||
		prepared[1].Attributes["dra.numa/namespaces"].IntValue == nil || prepared[1].Attributes["namespaces"].IntValue != nil {
		t.Errorf("attributes of the drive are %v", prepared[1].Attributes)
	}
	if strays := strays(driver.layout.machine, driver.config, driver.Grants()); len(strays) > 0 {
		t.Errorf("strays %v, want none: a PCI function is of no zone", strays)
	}
	spec := disk.files()[specName("uid-a")]
	files.Contains(t, spec,
		`{"path":"/dev/nvme1n1","type":"b","major":259,"minor":32,"permissions":"rw"}`,
		`"DRA_NUMA_PCI_CARDS=0001:31:00.1,0001:31:00.2"`,
		`"DRA_NUMA_PCI_DRIVE=0001:23:00.0"`,
		`"DRA_NUMA_CPUS_CPUS=`,
	)
	pinned, ok := driver.Pinned(prepared[1].CDIDeviceIDs)
	if env := []string{"DRA_NUMA_PCI=0001:23:00.0"}; !ok || !pinned.CPUs.IsEmpty() || !pinned.Mems.IsEmpty() || !slices.Equal(pinned.Environment(), env) {
		t.Errorf("a container with a drive only is pinned: %+v with environment %q, want only %q", pinned, pinned.Environment(), env)
	}
	files := disk.files()
	mustPrepare(t, disk.open(), wanted) // again, after a restart
	assertFiles(t, disk.files(), files)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	assertFiles(t, disk.files(), before)
	mustPrepare(t, driver, claim("b", functionResult("drive", driveB)))
}

func TestTwoClaimsNeverHoldOneFunction(t *testing.T) {
	for name, row := range map[string]struct {
		first, second, want string
	}{
		"the same":                {driveA, driveA, "PCI function 0001:21:00.0: claim default/first has PCI function 0001:21:00.0"},
		"physical after virtual":  {virtualB, card, "PCI function 0001:31:00.0: claim default/first has PCI function 0001:31:00.2"},
		"virtual after physical":  {card, virtualA, "PCI function 0001:31:00.1: claim default/first has PCI function 0001:31:00.0"},
		"one IOMMU group of VFIO": {virtualA, virtualB, "PCI function 0001:31:00.2: claim default/first has PCI function 0001:31:00.1"},
		"two drives":              {driveA, driveB, ""},
	} {
		t.Run(name, func(t *testing.T) {
			disk := pciDisk(t)
			if strings.HasPrefix(name, "one IOMMU group") {
				disk.shareGroup("0001:31:00.1", "0001:31:00.2")
			}
			driver := disk.open()
			mustPrepare(t, driver, claim("first", functionResult("r", row.first)))
			before := disk.files()
			second := claim("second", result("cpus", "numa-1", 2), functionResult("r", row.second))
			_, _, err := driver.Prepare(second, nil)
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || err.Error() != "request r: "+row.want {
				t.Errorf("error %v, want %s", err, row.want)
			}
			assertFiles(t, disk.files(), before)
			assertConsistent(t, disk, driver)
			if err := driver.Unprepare("uid-first"); err != nil {
				t.Fatal(err)
			}
			mustPrepare(t, driver, second)
		})
	}
}

// shareGroup puts a function into the IOMMU group of another.
func (d disk) shareGroup(first, second string) {
	d.t.Helper()
	devices := filepath.Join(d.root, "sys/bus/pci/devices")
	group, err := os.Readlink(filepath.Join(devices, first, "iommu_group"))
	link := filepath.Join(devices, second, "iommu_group")
	if err != nil || os.Remove(link) != nil || os.Symlink(group, link) != nil {
		d.t.Fatal(err)
	}
}

func TestAFunctionThatIsGoneIsAnErrorThatNamesIt(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.open()
	wanted := claim("a", functionResult("r", driveA))
	gone := func(claim *resourceapi.ResourceClaim) {
		t.Helper()
		before := disk.files()
		if _, _, err := driver.Prepare(claim, nil); !errors.Is(err, devnode.ErrGone) || !strings.Contains(err.Error(), "PCI function 0001:21:00.0: the machine no longer has it") {
			t.Errorf("error %v, want ErrGone with the address", err)
		}
		assertFiles(t, disk.files(), before)
	}
	disk.plug("0001:21:00.0", false) // between allocation and Prepare
	gone(wanted)
	machine := driver.Machine()
	without := machine
	without.PCI = slices.DeleteFunc(slices.Clone(machine.PCI), func(f numa.PCIFunction) bool { return f.Address == "0001:21:00.0" })
	driver.SetMachine(without) // and the daemon has seen it
	gone(wanted)
	disk.plug("0001:21:00.0", true)
	if _, _, err := driver.Prepare(wanted, nil); err == nil || !strings.Contains(err.Error(), "PCI function 0001:21:00.0: this node does not publish it") {
		t.Errorf("error %v of a function that is not published", err)
	}
	driver.SetMachine(machine)
	mustPrepare(t, driver, wanted)
	disk.plug("0001:21:00.0", false)
	gone(wanted) // prepared before, but its device nodes no longer work
	driver.SetMachine(without)
	assertGone(t, driver, driveA)
	driver.SetMachine(machine)
	assertGone(t, driver)
	driver.SetMachine(without)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Error(err)
	}
	if _, _, err := driver.Prepare(claim("b", functionResult("r", "nvme-0001-21-00")), nil); err == nil || !strings.Contains(err.Error(), "no such device, this node has numa-0") {
		t.Errorf("error %v of a name that is none", err)
	}
}

// assertGone checks that only these devices are published as gone, and that they come
// last.
func assertGone(t *testing.T, driver *Driver, names ...string) {
	t.Helper()
	machine := driver.Machine()
	usual := Devices(machine, driver.config, nil)
	devices := devices(&machine, driver.config, &dividing.Caches{}, holdings{strays: strays(&machine, driver.config, driver.Grants())}, nil)
	if diff := cmp.Diff(usual, devices[:len(usual)]); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	var gone []string
	for _, device := range devices[len(usual):] {
		gone = append(gone, device.Name)
		if taints := device.Taints; len(taints) != 1 || taints[0].Key != "dra.numa/fault" || taints[0].Value != "gone" || taints[0].Effect != resourceapi.DeviceTaintEffectNoSchedule {
			t.Errorf("%s has taints %v", device.Name, taints)
		}
		if bus := device.Attributes["resource.kubernetes.io/pciBusID"].StringValue; bus == nil || *bus != "0001:21:00.0" {
			t.Errorf("%s has attributes %v", device.Name, device.Attributes)
		}
	}
	if !slices.Equal(gone, names) {
		t.Errorf("published as gone are %v, want %v", gone, names)
	}
}

func TestAFunctionIsReadAgainWhenItsClaimIsPreparedAgain(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.open()
	wanted := claim("a", functionResult("r", driveA))
	mustPrepare(t, driver, wanted)
	controller := filepath.Join(disk.root, "sys/bus/pci/devices/0001:21:00.0/nvme/nvme0")
	namespace := filepath.Join(disk.root, "sys/class/block/nvme0n2")
	if err := errors.Join(os.MkdirAll(controller+"/nvme0n2", 0o755), os.MkdirAll(namespace, 0o755),
		os.WriteFile(namespace+"/dev", []byte("259:77\n"), 0o644), os.WriteFile(namespace+"/uevent", []byte("DEVNAME=nvme0n2\nDEVTYPE=disk\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, wanted)
	want := devnode.Node{Path: "/dev/nvme0n2", Type: "b", Major: 259, Minor: 77}
	if got := grantOf(driver, "uid-a").Shares[0].Function().Nodes; !slices.Contains(got, want) {
		t.Errorf("nodes are %+v, want also %+v", got, want)
	}
	assertConsistent(t, disk, driver)
}

func TestTheCDIDeviceOfOthersIsReferenced(t *testing.T) {
	disk := pciDisk(t)
	if err := disk.specs.WriteFile("amd.json", []byte(`{"cdiVersion":"0.6.0","kind":"amd.com/gpu","devices":[
		{"name":"all","containerEdits":{"deviceNodes":[{"path":"/dev/kfd"},{"path":"/dev/dri/card0"},{"path":"/dev/nvme0"}]}},
		{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/kfd"},{"path":"/dev/dri/card0"}]}}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	driver := disk.open()
	prepared := mustPrepare(t, driver, claim("a", functionResult("gpu", gpu)))
	if diff := cmp.Diff([]string{"dra.numa/claim=uid-a_gpu_" + gpu, "amd.com/gpu=0"}, prepared[0].CDIDeviceIDs); diff != "" {
		t.Errorf("CDI devices (-want +got):\n%s", diff)
	}
	f := prepared[0].Share.Function()
	if f.CDIDevice != "amd.com/gpu=0" || len(f.Nodes) > 0 {
		t.Errorf("on record is %+v", f)
	}
	spec, err := disk.specs.ReadFile(specName("uid-a"))
	if err != nil || strings.Contains(string(spec), `"deviceNodes"`) || !strings.Contains(string(spec), "DRA_NUMA_PCI=0001:41:00.0") {
		t.Errorf("the spec has nodes, or no environment: %s, %v", spec, err)
	}
}

func TestAdminAccessToAFunctionHoldsNothing(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.open()
	before := disk.files()
	seen := functionResult("r", driveA)
	seen.AdminAccess = new(true)
	if devices := mustPrepare(t, driver, claim("a", seen)); len(devices) != 1 || len(devices[0].CDIDeviceIDs) > 0 || devices[0].Share != nil {
		t.Errorf("devices %+v, want one without CDI device", devices)
	}
	assertFiles(t, disk.files(), before)
	mustPrepare(t, driver, claim("b", functionResult("r", driveA)))
}

func TestRecoveryGivesAFunctionToTheOlderClaim(t *testing.T) {
	for name, row := range map[string]struct{ older, younger, want string }{
		"the same":         {driveA, driveA, "PCI function 0001:21:00.0 is of claim default/a"},
		"one of the other": {virtualA, card, "PCI function 0001:31:00.1 is of claim default/a"},
	} {
		t.Run(name, func(t *testing.T) {
			disk, other := pciDisk(t), pciDisk(t)
			mustPrepare(t, disk.open(), claim("a", functionResult("r", row.older)))
			second := other.open()
			mustPrepare(t, second, claim("c", result("r", "numa-1", 2)))
			mustPrepare(t, second, claim("b", functionResult("r", row.younger)))
			disk.write(specName("uid-b"), other.files()[specName("uid-b")]) // as if the checkpoint had lost it
			driver, err := disk.tryRead(testConfig())
			if err != nil {
				t.Fatal(err)
			}
			report, err := driver.Recover(nil, nil)
			if err != nil || len(report) != 2 || report[0].Outcome != Kept || report[1].Outcome != Refused || report[1].Why != row.want {
				t.Errorf("report %v, %v, want a kept and b refused: %s", report, err, row.want)
			}
			assertConsistent(t, disk, driver)
		})
	}
}

func TestRebootForgetsAFunctionThatIsGone(t *testing.T) {
	disk := pciDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("a", functionResult("r", driveA)))
	mustPrepare(t, driver, claim("b", functionResult("r", driveB)))
	disk.machine.PCI = slices.DeleteFunc(slices.Clone(disk.machine.PCI), func(f numa.PCIFunction) bool { return f.Address == "0001:21:00.0" })
	driver = disk.openAfterBoot()
	if _, kept := driver.grants.Find("uid-b"); !kept || len(driver.grants) != 1 {
		t.Errorf("grants %v, want that of claim b only", driver.grants)
	}
	assertConsistent(t, disk, driver)
}

// The daemon is killed after each step, and inside each step, of everything that is
// done to a claim with devices.
func TestCrashWithFunctionsHeals(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	wanted := claim("a", functionResult("card", virtualA), result("cpus", "numa-1", 2), functionResult("drive", driveA))
	clean := pciDisk(t)
	empty := func() map[string]string { clean.open(); return clean.files() }()
	want := func() map[string]string {
		mustPrepare(t, clean.open(), wanted)
		return clean.files()
	}()
	for what, row := range map[string]struct {
		before bool // whether the claim is prepared first
		steps  func(*Driver) []step
	}{
		"prepare":   {false, func(d *Driver) []step { return d.prepareSteps(mustPlan(t, d, wanted)) }},
		"unprepare": {true, func(d *Driver) []step { return d.unprepareSteps("uid-a") }},
	} {
		for done := range crashSweep(t, what) {
			disk := pciDisk(t)
			driver := disk.open()
			if row.before {
				mustPrepare(t, driver, wanted)
			}
			if finished := crashAfter(t, disk, row.steps(driver), done); finished {
				break
			}
			driver = disk.open()
			assertConsistent(t, disk, driver)
			if row.before {
				if err := driver.Unprepare("uid-a"); err != nil {
					t.Fatal(err)
				}
				assertFiles(t, disk.files(), empty)
				mustPrepare(t, driver, claim("b", functionResult("r", card)))
				continue
			}
			_, _, err := driver.Prepare(claim("b", functionResult("r", card)), nil)
			if _, held := driver.grants.Find("uid-a"); held != (err != nil) {
				t.Errorf("after %d steps claim a is on record: %t, its card for another: %v", done, held, err)
			}
			if err := driver.Unprepare("uid-b"); err != nil {
				t.Fatal(err)
			}
			mustPrepare(t, driver, wanted)
			assertFiles(t, disk.files(), want)
		}
	}
}

func TestNamesOfDevicesAreTakenApart(t *testing.T) {
	for _, device := range attached.Devices(pciDisk(t).machine, withAttached(t, "true").Attached) {
		kind, address, ok := attached.Parse(device.Name)
		if !ok || kind != *device.Attributes[deviceclasses.AttributeKind].StringValue || address != *device.Attributes[deviceclasses.AttributePCIBusID].StringValue {
			t.Errorf("%s is %s %s, %t", device.Name, kind, address, ok)
		}
	}
	for _, name := range []string{"", "numa-0", "gpu", "tpu-0000-00-00-0", "gpu-0000-00-00-8", "gpu-0000-00-00-0-0", "gpu-0000-00-00"} {
		if kind, address, ok := attached.Parse(name); ok {
			t.Errorf("%q is %s %s", name, kind, address)
		}
	}
}
