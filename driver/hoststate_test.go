package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// boundDisk returns a pciDisk whose kernel can bind drivers.
func boundDisk(t testing.TB) disk {
	t.Helper()
	machine := pciMachine(t)
	machine.Drivers = []string{"vfio-pci"}
	for i := range machine.PCI {
		if machine.PCI[i].VFs > 0 {
			machine.PCI[i].VFDriver = "mlx5_core"
		}
	}
	disk := newDisk(t)
	var err error
	if disk.kernel, err = sysfs.NewHost(machine); err != nil {
		t.Fatal(err)
	}
	disk.publish(disk.kernel)
	return disk
}

// vfio returns the claim with a configuration that wants VFIO for these requests.
func vfio(claim *resourceapi.ResourceClaim, requests ...string) *resourceapi.ResourceClaim {
	return configured(claim, opaque(resourceapi.AllocationConfigSourceClaim,
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "DeviceConfig", "driver": "vfio-pci"}`, requests...))
}

// expectDriver checks which driver the kernel has bound.
func (d disk) expectDriver(device, want string) {
	d.t.Helper()
	address := strings.NewReplacer("nvme-", "", "nic-", "", "-", ":").Replace(device)
	address = address[:len("0001:21:00")] + "." + address[len("0001:21:00."):]
	if now, err := binding.Read(d.kernel, address); err != nil || now.Driver != want {
		d.t.Errorf("PCI function %s has driver %q, %v, want %q", address, now.Driver, err, want)
	}
}

func TestAClaimHasTheDriverThatItWants(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	before := disk.files()
	wanted := vfio(claim("a", result("cpus", "numa-1", 2), functionResult("drive", driveA), functionResult("other", driveB), functionResult("card", virtualA)), "drive", "card", "cpus")
	prepared := mustPrepare(t, driver, wanted)
	disk.expectDriver(driveA, "vfio-pci")
	disk.expectDriver(virtualA, "vfio-pci")
	disk.expectDriver(driveB, "nvme")
	for i, node := range map[int]string{1: "/dev/vfio/vfio", 2: "/dev/nvme1", 3: "/dev/vfio/vfio"} {
		found := false
		for _, got := range prepared[i].Share.Function().Nodes {
			found = found || got.Path == node
		}
		if !found {
			t.Errorf("%s has nodes %v, want %s", prepared[i].Device, prepared[i].Share.Function().Nodes, node)
		}
	}
	files := disk.files()
	if text := `"driver":"vfio-pci","before":{"driver":"nvme"}}`; !strings.Contains(files[ledger.CheckpointName], text) {
		t.Errorf("checkpoint %s has no %s", files[ledger.CheckpointName], text)
	}
	driver = disk.open()
	mustPrepare(t, driver, wanted)
	assertFiles(t, disk.files(), files)
	assertConsistent(t, disk, driver)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	disk.expectDriver(driveA, "nvme")
	disk.expectDriver(virtualA, "mlx5_core")
	assertFiles(t, disk.files(), before)
}

// The CDI device of a GPU's own driver has nodes that are gone when VFIO has the GPU.
func TestAFunctionWithVFIOHasNoCDIDeviceByName(t *testing.T) {
	disk := boundDisk(t)
	if err := disk.specs.WriteFile("amd.json", []byte(`{"cdiVersion":"0.6.0","kind":"amd.com/gpu","devices":[
		{"name":"d29a3a6f4c1b7e00","containerEdits":{"deviceNodes":[{"path":"/dev/kfd"},{"path":"/dev/dri/card0"}]}}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	driver := disk.open()
	got := mustPrepare(t, driver, vfio(claim("a", functionResult("gpu", gpu))))[0].Share.Function()
	if got.CDIDevice != "" || !slices.ContainsFunc(got.Nodes, func(node devnode.Node) bool { return node.Path == "/dev/vfio/vfio" }) {
		t.Errorf("on record is %+v, want the nodes of VFIO", got)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	got = mustPrepare(t, driver, claim("b", functionResult("gpu", gpu)))[0].Share.Function()
	if want := "amd.com/gpu=d29a3a6f4c1b7e00"; got.CDIDevice != want {
		t.Errorf("with its own driver it has the CDI device %q, want %q", got.CDIDevice, want)
	}
}

// After a crash at any step, the next operation ends as it would without the crash.
func TestCrashWhileDriversAreBoundHeals(t *testing.T) {
	wanted := vfio(claim("a", functionResult("drive", driveA), functionResult("card", virtualA)))
	for what, next := range map[string]func(disk) (*Driver, error){
		"prepared again": func(d disk) (*Driver, error) {
			driver := d.open()
			_, _, err := driver.Prepare(wanted, nil)
			return driver, err
		},
		"unprepared": func(d disk) (*Driver, error) {
			driver := d.open()
			return driver, driver.Unprepare("uid-a")
		},
		"forgotten": func(d disk) (*Driver, error) {
			driver, _ := d.recover(claims{"uid-a": nil})
			return driver, nil
		},
	} {
		for done := range crashSweep(t, what) {
			disk := boundDisk(t)
			driver := disk.open()
			steps := driver.applySteps(mustPlan(t, driver, wanted).Grant)
			if done > len(steps) { // only the steps of a claim that binds nothing are left
				break
			}
			crashAfter(t, disk, steps, done)
			driver, err := next(disk)
			if err != nil {
				t.Fatal(err)
			}
			assertConsistent(t, disk, driver)
			if what == "prepared again" {
				disk.expectDriver(driveA, "vfio-pci")
				disk.expectDriver(virtualA, "vfio-pci")
				if err := driver.Unprepare("uid-a"); err != nil {
					t.Fatal(err)
				}
			}
			disk.expectDriver(driveA, "nvme")
			disk.expectDriver(virtualA, "mlx5_core")
		}
	}
}

func TestAClaimThatIsAbandonedKeepsOnlyWhatIsNotRestored(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, vfio(claim("a", result("cpus", "numa-1", 4), functionResult("drive", driveA))))
	disk.kernel.Refuse("nvme", true)
	err := driver.Unprepare("uid-a")
	if notRestored := (*NotRestoredError)(nil); !errors.As(err, &notRestored) {
		t.Errorf("error %v, want a NotRestoredError", err)
	}
	if err := driver.Abandon("uid-a"); err != nil {
		t.Fatal(err)
	}
	taints := func() (taints []resourceapi.DeviceTaint) {
		for _, device := range driver.Publish(sound, cpuset.Set{}).Devices {
			if device.Name == driveA {
				taints = device.Taints
			}
		}
		return taints
	}
	for range 2 {
		report, err := driver.Observe(nil)
		if err != nil || len(report) != 1 || report[0].Outcome != Waiting || !strings.HasPrefix(report[0].Why, "the claim was unprepared, but restore the driver") {
			t.Errorf("report %v, %v, want one that waits", report, err)
		}
		if got := taints(); len(got) != 1 || got[0].Value != "not-restored" {
			t.Errorf("taints %v, want not-restored", got)
		}
		driver, _ = disk.recover(claims{"uid-a": nil}) // another daemon knows as much
	}
	mustPrepare(t, driver, claim("b", result("cpus", "numa-1", 4))) // its CPUs are free
	if _, _, err := driver.Prepare(claim("c", functionResult("drive", driveA)), nil); err == nil {
		t.Error("another claim gets the function")
	}
	disk.kernel.Refuse("nvme", false)
	if report, err := driver.Observe(nil); err != nil || len(report) != 1 || report[0].Outcome != Released {
		t.Errorf("report %v, %v, want that it is released", report, err)
	}
	disk.expectDriver(driveA, "nvme")
	if got := taints(); len(got) > 0 {
		t.Errorf("taints %v, want none", got)
	}
	mustPrepare(t, driver, claim("c", functionResult("drive", driveA)))
}

func TestAFunctionThatDoesNotGetItsDriverBackStaysWithItsClaim(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, vfio(claim("a", result("cpus", "numa-1", 2), functionResult("drive", driveA))))
	disk.kernel.Refuse("nvme", true)
	if err := driver.Unprepare("uid-a"); err == nil || !strings.Contains(err.Error(), "restore the driver that was bound before claim default/a: PCI function 0001:21:00.0: kernel driver nvme did not bind") {
		t.Errorf("error %v, want one of the kernel driver", err)
	}
	driver, report := disk.recover(claims{"uid-a": nil})
	if len(report) != 1 || report[0].Outcome != Waiting || !strings.HasPrefix(report[0].Why, "the claim is gone, but restore the driver that was bound before claim default/a: ") {
		t.Errorf("report %v, want one that waits", report)
	}
	if grant := grantOf(driver, "uid-a"); len(grant.Shares) != 1 || grant.Shares[0].Device != driveA {
		t.Errorf("%s is kept, want %s only", grant, driveA)
	}
	if _, _, err := driver.Prepare(claim("b", functionResult("drive", driveA)), nil); err == nil || !strings.Contains(err.Error(), "claim default/a has PCI function 0001:21:00.0") {
		t.Errorf("error %v, want that the function is held", err)
	}
	for range 2 {
		report, err := driver.Observe(nil)
		if err != nil || len(report) != 1 || report[0].Outcome != Waiting || strings.Count(report[0].Why, "but") != 1 {
			t.Errorf("report %v, %v, want one that waits", report, err)
		}
	}
	disk.kernel.Refuse("nvme", false)
	if report, err := driver.Observe(nil); err != nil || len(report) != 1 || report[0].Outcome != Released {
		t.Errorf("report %v, %v, want one release", report, err)
	}
	disk.expectDriver(driveA, "nvme")
	assertConsistent(t, disk, driver)
}

func TestAllocatedAnewAClaimGivesFunctionsBack(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, vfio(claim("a", functionResult("drive", driveA), functionResult("card", virtualA))))
	mustPrepare(t, driver, vfio(claim("a", functionResult("drive", driveB), functionResult("card", virtualA))))
	disk.expectDriver(driveA, "nvme")
	disk.expectDriver(driveB, "vfio-pci")
	disk.expectDriver(virtualA, "vfio-pci")
	assertConsistent(t, disk, driver)
	mustPrepare(t, driver, claim("a", functionResult("card", virtualA), functionResult("drive", driveB))) // in another order, and with their own drivers
	for device, want := range map[string]string{driveB: "nvme", virtualA: "mlx5_core"} {
		disk.expectDriver(device, want)
	}
	assertConsistent(t, disk, driver)
}

func TestANodeThatBindsNoDrivers(t *testing.T) {
	disk := boundDisk(t)
	wanted := vfio(claim("a", functionResult("drive", driveA)))
	driver := disk.open()
	driver.config.Drivers = nil
	before := disk.files()
	if _, _, err := driver.Prepare(wanted, nil); err == nil || !strings.HasSuffix(err.Error(), "driver vfio-pci: this node binds no drivers: devices.bindDrivers is not set in its NodeConfig") {
		t.Errorf("error %v", err)
	}
	assertFiles(t, disk.files(), before)
	mustPrepare(t, driver, vfio(claim("b", result("r", "numa-1", 2)))) // it has no function
	binds := disk.open()
	mustPrepare(t, binds, wanted)

	driver = disk.open() // binding is switched off while the claim has the function
	driver.config.Drivers = nil
	if err := driver.Unprepare("uid-a"); err == nil || !strings.Contains(err.Error(), "PCI function 0001:21:00.0: this node binds no drivers any more: set devices.bindDrivers") {
		t.Errorf("error %v", err)
	}
	if err := disk.open().Unprepare("uid-a"); err != nil { // and switched on again
		t.Error(err)
	}
	disk.expectDriver(driveA, "nvme")
}

func TestOnlyClassesBindDrivers(t *testing.T) {
	const binds = `{"apiVersion": "dra.numa/v1alpha1", "kind": "DeviceConfig", "driver": "vfio-pci"}`
	const keeps = `{"apiVersion": "dra.numa/v1alpha1", "kind": "DeviceConfig", "driver": ""}`
	class := opaque(resourceapi.AllocationConfigSourceClass, binds)
	disk := boundDisk(t)
	driver := disk.open()
	driver.config.ClaimsBind = false
	before := disk.files()
	for name, configs := range map[string][]resourceapi.DeviceAllocationConfiguration{
		"the claim": {opaque(resourceapi.AllocationConfigSourceClaim, binds)},
		"the class of another request": {
			opaque(resourceapi.AllocationConfigSourceClass, binds, "other"), opaque(resourceapi.AllocationConfigSourceClaim, binds),
		},
	} {
		_, _, err := driver.Prepare(configured(claim("a", functionResult("drive", driveA)), configs...), nil)
		if err == nil || !strings.HasSuffix(err.Error(), "driver vfio-pci: only a DeviceClass can ask for a driver on this node: devices.bindDrivers is class in its NodeConfig") {
			t.Errorf("%s binds: error %v", name, err)
		}
		assertFiles(t, disk.files(), before)
	}
	mustPrepare(t, driver, configured(claim("a", functionResult("drive", driveA)), class))
	disk.expectDriver(driveA, "vfio-pci")
	mustPrepare(t, driver, configured(claim("b", functionResult("drive", driveB)), class, opaque(resourceapi.AllocationConfigSourceClaim, binds)))
	disk.expectDriver(driveB, "vfio-pci")
	mustPrepare(t, driver, configured(claim("c", functionResult("card", virtualA)), class, opaque(resourceapi.AllocationConfigSourceClaim, keeps)))
	disk.expectDriver(virtualA, "mlx5_core")
	assertConsistent(t, disk, driver)
}

// The kubelet prepares the claims of running pods again when it starts.
func TestAClaimKeepsTheDriverThatItHas(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	wanted := vfio(claim("a", functionResult("drive", driveA)))
	mustPrepare(t, driver, wanted)
	driver = disk.open()
	driver.config.ClaimsBind = false
	mustPrepare(t, driver, wanted)
	disk.expectDriver(driveA, "vfio-pci")
	assertConsistent(t, disk, driver)
}

func TestAFunctionThatCannotBeBoundIsAnErrorAndGoesBack(t *testing.T) {
	disk := boundDisk(t)
	driver := disk.open()
	before := disk.files()
	_, _, err := driver.Prepare(vfio(claim("a", functionResult("card", card))), nil)
	if want := "bind driver vfio-pci for claim default/a: PCI function 0001:31:00.0: the host uses it: it has virtual functions"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	disk.expectDriver(card, "mlx5_core")
	if err := disk.open().Unprepare("uid-a"); err != nil {
		t.Error(err)
	}
	assertFiles(t, disk.files(), before)
}

// The function has the address of the drive, whose kernel driver it never had.
func TestDriverIsNotRestoredForAnotherKindOfDevice(t *testing.T) {
	disk := boundDisk(t)
	mustPrepare(t, disk.open(), vfio(claim("a", functionResult("drive", driveA))))
	machine := pciMachine(t)
	machine.Drivers, machine.PCI = []string{"vfio-pci"}, []fake.Function{fake.MI300X("0001:21:00.0", 0, 0)}
	var err error
	if disk.kernel, err = sysfs.NewHost(machine); err != nil {
		t.Fatal(err)
	}
	disk.publish(disk.kernel)
	driver := disk.openAfterBoot()
	if _, held := driver.Grant("uid-a"); held {
		t.Error("the claim still holds it")
	}
	if now, err := binding.Read(disk.kernel, "0001:21:00.0"); err != nil || now != (binding.State{Driver: "amdgpu"}) {
		t.Errorf("its driver is %+v, %v, want amdgpu", now, err)
	}
}

// What the function had in another boot says nothing about this one.
func TestDriverOfAnotherBootIsNotRestored(t *testing.T) {
	wanted := vfio(claim("a", functionResult("drive", driveA)))
	for name, prepares := range map[string]bool{"prepared again": true, "ended": false} {
		t.Run(name, func(t *testing.T) {
			disk := boundDisk(t)
			mustPrepare(t, disk.open(), wanted)
			disk.kernel = boundDisk(t).kernel
			disk.publish(disk.kernel)
			before := binding.State{Driver: "nvme", Override: "nvme"}
			if err := disk.kernel.Write("sys/bus/pci/devices/0001:21:00.0/driver_override", before.Override); err != nil {
				t.Fatal(err)
			}
			driver := disk.openAfterBoot()
			if prepares {
				mustPrepare(t, driver, wanted)
				disk.expectDriver(driveA, "vfio-pci")
			}
			assertConsistent(t, disk, driver)
			if err := driver.Unprepare("uid-a"); err != nil {
				t.Fatal(err)
			}
			if now, err := binding.Read(disk.kernel, "0001:21:00.0"); err != nil || now != before {
				t.Errorf("it has %+v, %v, want %+v", now, err, before)
			}
		})
	}
}
