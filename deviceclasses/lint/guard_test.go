package lint

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	published "github.com/dra-driver-numa/dra-driver-numa/driver/zones"
)

// The probes have the attributes that every zone and every PCI function has, so a
// selector that reads only those needs no guard. A zone of several NUMA nodes has no NUMA
// node; that is ignored, because classes are written for the other zones.
func TestProbesHaveWhatIsAlwaysPublished(t *testing.T) {
	probes := probes()
	for _, attribute := range published.Attributes() {
		_, has := probes[1].device.Attributes[attribute.Name]
		if want := attribute.Absent == "" || attribute.Absent == published.SeveralNodes; has != want {
			t.Errorf("probe of a zone: %s is there: %t, want %t", attribute.Name, has, want)
		}
	}
	for name := range probes[2].device.Attributes {
		always := false
		for _, attribute := range attached.Attributes() {
			always = always || attribute.Name == name && attribute.Absent == ""
		}
		if !always {
			t.Errorf("probe of a PCI function: %s is not always published", name)
		}
	}
}
