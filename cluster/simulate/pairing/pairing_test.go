package pairing

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// What drivers publish of a device: under PCIe root ROOT, on NUMA node NODE.
const (
	zone      = "{name: numa-NODE, attributes: {kind: {string: zone}, resource.kubernetes.io/numaNode: {int: NODE}, dra.net/numaNode: {int: NODE}, gpu.amd.com/numaNode: {int: NODE}}}"
	nvidia    = "{name: gpu-ROOT, attributes: {resource.kubernetes.io/pcieRoot: {string: 'pci0000:ROOT'}}}"
	nvidiaDev = "{name: gpu-ROOT, attributes: {numaNode: {int: NODE}, resource.kubernetes.io/numaNode: {int: NODE}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:ROOT'}}}"
	amd       = "{name: gpu-ROOT, attributes: {numaNode: {int: NODE}, gpu.amd.com/numaNode: {int: NODE}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:ROOT'}}}"
	rootless  = "{name: gpu-ROOT, attributes: {resource.kubernetes.io/numaNode: {int: NODE}}}"
	dranet    = "{name: ethROOT, attributes: {dra.net/numaNode: {int: NODE}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:ROOT'}}}"
	unplaced  = "{name: ethROOT, attributes: {dra.net/numaNode: {int: -1}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:ROOT'}}}"
	nowhere   = "{name: ethROOT, attributes: {resource.kubernetes.io/pcieRoot: {string: 'pci0000:ROOT'}}}"
)

// slice has a device at each of the places, which are pairs of a root and a NUMA node.
func slice(driver, device string, places ...[2]int) string {
	var devices []string
	for _, place := range places {
		devices = append(devices, strings.NewReplacer("ROOT", strconv.Itoa(place[0]), "NODE", strconv.Itoa(place[1])).Replace(device))
	}
	return object.SliceText(driver, driver, "["+strings.Join(devices, ", ")+"]") + object.ClassText(driver, fmt.Sprintf("device.driver == %q", driver))
}

// pairsOf is a wish for as many pairs of a GPU and a card, spread over the shares.
func pairsOf(count int64, shares int) manifest.Wish {
	return manifest.Wish{
		Class: "zone.dra.numa", CPUs: 2, Shares: shares, Paired: true,
		Devices: []manifest.Devices{{Class: "gpu.example.com", Count: count}, {Class: "dra.net", Count: count}},
	}
}

func TestConstraintsAreThoseThatDevicesMeet(t *testing.T) {
	const standard, net, amdNode = "resource.kubernetes.io/numaNode", "dra.net/numaNode", "gpu.amd.com/numaNode"
	zones := slice("dra.numa", zone, [2]int{0, 0}, [2]int{0, 1})
	four := [][2]int{{1, 0}, {2, 0}, {3, 1}, {4, 1}}
	for name, row := range map[string]struct {
		gpus, cards string
		wish        manifest.Wish
		near        string // the attributes of GPU and card
		err         string
	}{
		"only the card has its NUMA node":  {slice("gpu.example.com", nvidia, four...), slice("dra.net", dranet, four...), pairsOf(2, 1), " " + net, ""},
		"each has its own attribute":       {slice("gpu.example.com", nvidiaDev, four...), slice("dra.net", dranet, four...), pairsOf(2, 1), standard + " " + net, ""},
		"a GPU of AMD":                     {slice("gpu.example.com", amd, four...), slice("dra.net", dranet, four...), pairsOf(2, 1), amdNode + " " + net, ""},
		"the card has -1":                  {slice("gpu.example.com", nvidiaDev, four...), slice("dra.net", unplaced, four...), pairsOf(2, 1), standard + " ", ""},
		"two shares":                       {slice("gpu.example.com", nvidia, four...), slice("dra.net", dranet, four...), pairsOf(4, 2), " " + net, ""},
		"values that contradict the other": {slice("gpu.example.com", nvidiaDev, [2]int{1, 1}), slice("dra.net", dranet, [2]int{1, 0}), pairsOf(1, 1), standard + " ", ""},
		"no roots": {
			slice("gpu.example.com", rootless, four...), slice("dra.net", dranet, four...), pairsOf(2, 1), "",
			"no device of class gpu.example.com has the attribute resource.kubernetes.io/pcieRoot, which pairs have in common: driver gpu.example.com does not publish it",
		},
		"no root in common": {
			slice("gpu.example.com", nvidia, [2]int{1, 0}), slice("dra.net", dranet, [2]int{2, 0}), pairsOf(1, 1), "",
			"no PCIe root of the slices has devices of the classes gpu.example.com and dra.net: there are no pairs",
		},
		"no NUMA nodes": {
			slice("gpu.example.com", nvidia, four...), slice("dra.net", nowhere, four...), pairsOf(1, 1), "",
			"no device of a pair has resource.kubernetes.io/numaNode or dra.net/numaNode or gpu.amd.com/numaNode, where zones have their NUMA node: " +
				"driver gpu.example.com for class gpu.example.com and driver dra.net for class dra.net do not publish it; if they have another attribute for it, name it in numaNodeKeys of the NodeConfig",
		},
		"no NUMA node of a zone": {
			slice("gpu.example.com", nvidia, [2]int{1, 7}), slice("dra.net", dranet, [2]int{1, 7}), pairsOf(1, 1), "",
			"no pair of the classes gpu.example.com and dra.net is on the NUMA node of a zone: devices of class dra.net have other values of dra.net/numaNode",
		},
		"more than a NUMA node has": {
			slice("gpu.example.com", nvidia, four...), slice("dra.net", dranet, four...), pairsOf(3, 1), "",
			"3 pairs for a share: a NUMA node of the slices has 2 at most; want fewer pairs or more shares",
		},
		"more shares than NUMA nodes": {
			slice("gpu.example.com", nvidia, four...), slice("dra.net", dranet, four...), pairsOf(3, 3), "",
			"3 shares with 1 pairs each, on different NUMA nodes: no node of the slices has as many",
		},
		"no devices": {
			slice("gpu.example.com", nvidia, four...), object.ClassText("dra.net", `device.driver == "dra.net"`), pairsOf(1, 1), "",
			"class dra.net selects no device of the slices",
		},
		"no class": {
			slice("gpu.example.com", nvidia, four...), "", pairsOf(1, 1), "",
			`DeviceClass "dra.net" is neither in the files nor one of the chart's: add it to the files`,
		},
	} {
		objects := object.Snapshot(t, zones, row.gpus, row.cards)
		got, err := Choose(objects, row.wish)
		if row.err != "" {
			if err == nil || err.Error() != row.err {
				t.Errorf("%s: error is\n%v, want\n%s", name, err, row.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if near := string(got.Devices[0].Near + " " + got.Devices[1].Near); near != row.near {
			t.Errorf("%s: devices have %q in common with zones, want %q", name, near, row.near)
		}
		if row.wish.Devices[0].Near != "" || row.wish.Devices[1].Near != "" {
			t.Errorf("%s: the wish has changed", name)
		}
	}
}

// A zone of several NUMA nodes is near the devices of each of them, but those of a share have
// one in common.
func TestZonesOfSeveralNUMANodesHavePairs(t *testing.T) {
	zones := object.SliceText("dra.numa", "dra.numa", "[{name: socket-0, attributes: {kind: {string: zone}, "+
		"resource.kubernetes.io/numaNode: {ints: [0, 1]}, dra.net/numaNode: {ints: [0, 1]}, gpu.amd.com/numaNode: {ints: [0, 1]}}}]")
	four := [][2]int{{1, 0}, {2, 0}, {3, 1}, {4, 1}}
	objects := object.Snapshot(t, zones, slice("gpu.example.com", nvidiaDev, four...), slice("dra.net", dranet, four...))
	got, err := Choose(objects, pairsOf(2, 1))
	if err != nil || got.Devices[0].Near != "resource.kubernetes.io/numaNode" || got.Devices[1].Near != "dra.net/numaNode" {
		t.Errorf("%+v, %v", got.Devices, err)
	}
	for want, wish := range map[string]manifest.Wish{
		"3 pairs for a share: a NUMA node of the slices has 2 at most; want fewer pairs or more shares": pairsOf(3, 1),
		"2 shares with 1 pairs each, on different NUMA nodes: no node of the slices has as many":        pairsOf(2, 2),
	} {
		if _, err := Choose(objects, wish); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Without a share, devices need no NUMA node, but must be on one node of the cluster.
func TestPairsWithoutShare(t *testing.T) {
	objects := object.Snapshot(t, slice("gpu.example.com", nvidia, [2]int{1, 0}, [2]int{2, 0}), slice("dra.net", nowhere, [2]int{1, 0}, [2]int{2, 0}))
	for count, want := range map[int64]string{2: "", 3: "3 pairs: a node of the slices has 2 at most"} {
		wish := pairsOf(count, 1)
		wish.CPUs = 0
		got, err := Choose(objects, wish)
		if message := fmt.Sprint(err); want != "" && message != want || want == "" && err != nil {
			t.Errorf("%d pairs: error is %v, want %q", count, err, want)
		}
		for _, devices := range got.Devices {
			if devices.Near != "" {
				t.Errorf("%d pairs: class %s is near a zone by %s", count, devices.Class, devices.Near)
			}
		}
	}
}

// The filter of the zones counts: a pair near another zone does not help.
func TestPairsAreNearZonesOfTheFilter(t *testing.T) {
	objects := object.Snapshot(t, slice("dra.numa", zone, [2]int{0, 0}, [2]int{0, 1}),
		slice("gpu.example.com", nvidia, [2]int{1, 0}), slice("dra.net", dranet, [2]int{1, 0}))
	for node, near := range map[int64]resourceapi.FullyQualifiedName{0: "dra.net/numaNode", 1: ""} {
		wish := pairsOf(1, 1)
		wish.Filter.Node = &node
		got, err := Choose(objects, wish)
		if got.Devices[1].Near != near || (err == nil) != (near != "") {
			t.Errorf("NUMA node %d: the card is near by %q, error %v", node, got.Devices[1].Near, err)
		}
	}
}
