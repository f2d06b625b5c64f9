package apiserver

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// TestListsWhereTheGateIsOn looks at what the program publishes, and asks as it does. The names
// of tests are part of the paths of sockets, which must be short.
func TestListsWhereTheGateIsOn(t *testing.T) {
	for cluster, on := range map[string]bool{"LISTS_KUBECONFIG": true, "APISERVER_KUBECONFIG": false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			admin := clientFor(t, cluster)
			daemon := buildDaemon(t)
			if got, err := kubeletplugin.NUMANodeLists().Ask(t.Context(), admin, "nobody"); err != nil || got != on {
				t.Errorf("the API server has lists: %t, %v, want %t", got, err, on)
			}
			for name, row := range map[string]struct {
				config string
				want   bool
			}{
				"listed":       {"zoneBy: machine", on},
				"never-listed": {"zoneBy: machine\nnumaNodeLists: never", false},
				"single":       {"zoneBy: numa", false},
			} {
				office := openOffice(t, admin, name)
				config := filepath.Join(t.TempDir(), "config.yaml")
				files.Write(t, config, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"+row.config+"\n")
				run(t, cluster, daemon, machineFolder(t), office.node, "--config="+config).answers(t, "200 ok")
				devices := nodeDevices(t, admin, office.node)
				if len(devices) == 0 {
					t.Errorf("%s: no devices", name)
				}
				for i, device := range devices {
					if got := driver.HasList(device); got != (row.want && i == 0) {
						t.Errorf("%s: device %s has a list: %t", name, device.Name, got)
					}
				}
			}
		})
	}
}

// TestServerKeepsLists of all machines, with as many keys as a NodeConfig can have.
func TestServerKeepsLists(t *testing.T) {
	admin := clientFor(t, "LISTS_KUBECONFIG")
	everything, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, preset := range fake.Presets() {
		for _, by := range []string{deviceclasses.ZoneBySocket, deviceclasses.ZoneByMachine} {
			config := driver.Config{ZoneBy: by, Exclusivity: driver.ExclusivityKernel, Attached: everything}
			config.NUMANodeLists = true
			config.NUMANodeKeys = append(config.NUMANodeKeys, "a.example.com/numaNode", "b.example.com/numaNode", "c.example.com/numaNode", "d.example.com/numaNode")
			node := nodeName(preset.Name + "-" + by)
			devices := driver.Devices(sample.Machine(t, preset.Name), config, nil)
			for _, device := range devices {
				if driver.HasList(device) {
					lists++
				}
			}
			sent := driver.Resources(node, devices).Pools[node].Slices
			if diff := cmp.Diff(sent, publishSlices(t.Context(), t, admin, node, sent)); diff != "" {
				t.Errorf("%s by %s (-sent +kept):\n%s", preset.Name, by, diff)
			}
		}
	}
	if lists == 0 {
		t.Error("no machine has a zone of several NUMA nodes")
	}
}
