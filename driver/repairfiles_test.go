package driver

import (
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
)

// Another program removes files while the daemon runs.
func TestRemovedFilesAreWrittenAgain(t *testing.T) {
	disk := preparedDisk(t)
	driver := disk.open()
	want := disk.files()
	for name := range want {
		disk.remove(name)
	}
	written, err := driver.RepairFiles()
	if err != nil || !slices.Equal(written, []string{tuning.FirstName, ledger.CheckpointName, "CDI spec of claim default/a", "CDI spec of claim default/b"}) {
		t.Errorf("written are %q, %v", written, err)
	}
	assertFiles(t, disk.files(), want)
	if written, err := driver.RepairFiles(); err != nil || len(written) > 0 {
		t.Errorf("nothing was removed: written are %q, %v", written, err)
	}
}

// A claim that ends has no CDI spec, although the host is not as it was yet: no container of it
// may start.
func TestTheSpecOfAClaimThatEndsIsNotWrittenAgain(t *testing.T) {
	n, _ := changedNode(t)
	off := n.config()
	off.Tuning = nil
	driver := n.openWith(off)
	for _, end := range []func() error{func() error { return driver.Unprepare("uid-a") }, func() error { return driver.Abandon("uid-a") }} {
		if err := end(); err != nil {
			t.Log(err)
		}
		if written, err := driver.RepairFiles(); err != nil || len(written) > 0 {
			t.Errorf("written are %q, %v", written, err)
		}
	}
	driver = n.start(slow(), false)
	unprepare(t, driver, "uid-a")
}
