package driver

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// sound is a node on which every cgroup is as it should be.
func sound(types.UID, Share) string { return "" }

func TestAFunctionThatIsGoneIsAProblemOfItsClaim(t *testing.T) {
	machine := testMachine()
	machine.PCI = []numa.PCIFunction{{Address: "0000:3b:00.0"}}
	problems, tainted := problemsOf(&machine, sampleCheckpoint().Grants[2:], sound)
	for device, address := range map[string]string{"nvme-0000-3b-00-0": "", "nic-0000-5e-00-2": "0000:5e:00.2", "gpu-0000-17-00-0": "0000:17:00.0"} {
		var want []string
		if address != "" {
			want = []string{"claim default/c: PCI function " + address + " is gone"}
		}
		if !slices.Equal(problems[device], want) {
			t.Errorf("problems of %s are %q, want %q", device, problems[device], want)
		}
	}
	if len(tainted) > 0 {
		t.Errorf("faults of zones %v, want none", tainted)
	}
}

// Devices are built again only if what they are built from has changed.
func TestPublishRenewsWhatHasChanged(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	renewed := func(what string, want bool, publication Publication) {
		t.Helper()
		if publication.Renewed != want || len(publication.Devices) == 0 {
			t.Errorf("%s: renewed %t with %d devices, want %t", what, publication.Renewed, len(publication.Devices), want)
		}
	}
	faults := func(claimUID types.UID, _ Share) string {
		return map[types.UID]string{"uid-a": "root invalid"}[claimUID]
	}
	renewed("first", true, driver.Publish(sound))
	renewed("nothing new", false, driver.Publish(sound))
	renewed("a partition is lost", true, driver.Publish(faults))
	renewed("it is still lost", false, driver.Publish(faults))
	renewed("it is back", true, driver.Publish(sound))
	driver.SetMachine(driver.Machine())
	renewed("the machine was read again", true, driver.Publish(sound))
}
