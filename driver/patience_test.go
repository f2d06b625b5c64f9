package driver

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
)

// stuckDriver is a driver on a node whose kernel does not finish to unbind functions
// until it is let.
func stuckDriver(t *testing.T) (disk disk, driver *Driver, let func()) {
	t.Helper()
	disk = boundDisk(t)
	driver = disk.open()
	release := make(chan struct{})
	driver.config.Drivers = binding.New(disk.kernel, func(name, text string) error {
		if strings.HasSuffix(name, "/unbind") {
			<-release
		}
		return disk.kernel.Write(name, text)
	})
	return disk, driver, func() { close(release) }
}

// A function that its kernel driver does not release delays no other claim.
func TestOthersDoNotWaitForTheKernel(t *testing.T) {
	disk, driver, let := stuckDriver(t)
	wanted := vfio(claim("a", functionResult("drive", driveA)))
	var busy *BusyError
	if _, _, err := driver.Prepare(wanted, nil); !errors.As(err, &busy) {
		t.Fatalf("error %v, want that the kernel is busy", err)
	}
	if _, held := driver.Grant("uid-a"); !held {
		t.Error("the function is not on record while the kernel releases it")
	}
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)))
	if err := driver.Unprepare("uid-b"); err != nil {
		t.Error(err)
	}
	if _, err := driver.Observe(nil); err != nil {
		t.Error(err)
	}
	if _, _, err := driver.Prepare(vfio(claim("c", functionResult("drive", driveA))), nil); err == nil || !strings.Contains(err.Error(), "claim default/a has PCI function") {
		t.Errorf("another claim of the function: error %v, want one with its holder", err)
	}
	if err := driver.Unprepare("uid-a"); !errors.As(err, &busy) {
		t.Errorf("unprepare: error %v, want that the kernel is busy", err)
	}
	let()
	if err := busy.Wait(time.Minute); err != nil {
		t.Error(err)
	}
	mustPrepare(t, driver, wanted)
	disk.expectDriver(driveA, "vfio-pci")
	assertConsistent(t, disk, driver)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Error(err)
	}
	disk.expectDriver(driveA, "nvme")
	assertConsistent(t, disk, driver)
}
