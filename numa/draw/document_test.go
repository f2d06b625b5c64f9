package draw

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// keys are those of each list of the document; programs rely on them.
var keys = map[string]string{
	"nodes":   "cpus cpusIn distances hugepages id kind memoryBytes nearestCPUNode socket",
	"cpus":    "core die id isolated l3 node online siblings socket type",
	"devices": "address class device driver kind node pcieRoot physfn vendor",
}

func TestDocumentHasEveryKeyEverywhere(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(document(t, machine)), &all); err != nil {
			t.Fatal(err)
		}
		if platform := string(all["platform"]); platform != "null" {
			t.Errorf("the platform is %s, and nobody has asked", platform)
		}
		delete(all, "platform")
		lists := make(map[string][]map[string]any)
		for name, text := range all {
			var list []map[string]any
			if err := json.Unmarshal(text, &list); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			lists[name] = list
		}
		if len(lists) != len(keys) {
			t.Errorf("the document has the lists %v", slices.Sorted(maps.Keys(lists)))
		}
		for name, want := range keys {
			if lists[name] == nil {
				t.Errorf("%s is null", name)
			}
			for i, item := range lists[name] {
				if got := strings.Join(slices.Sorted(maps.Keys(item)), " "); got != want {
					t.Fatalf("%s[%d] has %s, want %s", name, i, got, want)
				}
			}
		}
	})
}

func TestDocumentIsTheMachine(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		var d Document
		decoder := json.NewDecoder(strings.NewReader(document(t, machine)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			t.Fatal(err)
		}
		var zones []numa.Zone
		for _, n := range d.Nodes {
			zone := numa.Zone{ID: n.ID, Kind: n.Kind, CPUs: n.CPUs, MemoryBytes: n.MemoryBytes, Nearest: n.NearestCPUNode}
			for _, distance := range n.Distances {
				zone.Distances = append(zone.Distances, numa.Distance{Zone: distance.Node, Value: distance.Distance})
			}
			zones = append(zones, zone)
		}
		if len(zones) != len(machine.Zones) {
			t.Fatalf("%d nodes of %d zones", len(zones), len(machine.Zones))
		}
		for i, zone := range machine.Zones {
			want := numa.Zone{ID: zone.ID, Kind: zone.Kind, CPUs: zone.CPUs, MemoryBytes: zone.MemoryBytes, Nearest: zone.Nearest, Distances: zone.Distances}
			if diff := cmp.Diff(want, zones[i], cmp.Comparer(func(a, b cpuset.Set) bool { return a == b })); diff != "" {
				t.Errorf("node %d (-machine +document):\n%s", zone.ID, diff)
			}
		}
		var present, online cpuset.Set
		for _, cpu := range d.CPUs {
			present = present.Union(cpuset.New(cpu.ID))
			if cpu.Online {
				online = online.Union(cpuset.New(cpu.ID))
			}
		}
		if present != machine.Present || online != machine.Online {
			t.Errorf("CPUs %s, online %s; the machine has %s, %s", present, online, machine.Present, machine.Online)
		}
		for _, core := range machine.Cores {
			for id := range core.CPUs.All() {
				at := slices.IndexFunc(d.CPUs, func(cpu CPU) bool { return cpu.ID == id })
				want := CPU{
					ID: id, Socket: core.Socket, Die: core.Die, Core: core.ID, Node: &core.Zone, L3: core.L3, Siblings: &core.CPUs, Type: &core.Type,
					Online: true, Isolated: d.CPUs[at].Isolated,
				}
				if diff := cmp.Diff(want, d.CPUs[at], cmp.Comparer(func(a, b cpuset.Set) bool { return a == b })); diff != "" {
					t.Errorf("cpu %d (-machine +document):\n%s", id, diff)
				}
			}
		}
		if len(d.Devices) != len(machine.PCI) {
			t.Errorf("%d devices of %d PCI functions", len(d.Devices), len(machine.PCI))
		}
	})
}

func TestUnknownIsNull(t *testing.T) {
	machine := numa.Machine{
		Present: cpuset.New(0, 1), Online: cpuset.New(0), Zones: []numa.Zone{{CPUs: cpuset.New(0), Kind: numa.CPUZone}},
		Cores: []numa.Core{{CPUs: cpuset.New(0), Type: numa.StandardCores}},
		PCI:   []numa.PCIFunction{{Address: "0000:01:00.0", Kind: numa.OtherFunction}},
	}
	const want = `{
  "platform": null,
  "nodes": [
    {"id":0,"kind":"cpu","socket":null,"cpus":"0","memoryBytes":null,"hugepages":null,"distances":null,"nearestCPUNode":null,"cpusIn":null}
  ],
  "cpus": [
    {"id":0,"socket":null,"die":null,"core":null,"node":0,"l3":null,"siblings":"0","type":"standard","online":true,"isolated":null},
    {"id":1,"socket":null,"die":null,"core":null,"node":null,"l3":null,"siblings":null,"type":null,"online":false,"isolated":null}
  ],
  "devices": [
    {"address":"0000:01:00.0","class":null,"vendor":null,"device":null,"driver":null,"node":null,"pcieRoot":null,"physfn":null,"kind":"pci"}
  ]
}
`
	if diff := cmp.Diff(want, document(t, machine)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if got, want := document(t, numa.Machine{}), "{\n  \"platform\": null,\n  \"nodes\": [],\n  \"cpus\": [],\n  \"devices\": []\n}\n"; got != want {
		t.Errorf("document of nothing %s", got)
	}
}

func TestKnownIsInTheDocument(t *testing.T) {
	isolated := cpuset.New(1)
	machine := numa.Machine{
		Present: cpuset.New(0, 1), Online: cpuset.New(0, 1), Isolated: &isolated,
		Zones: []numa.Zone{
			{
				ID: 2, CPUs: cpuset.New(0, 1), Kind: numa.CPUZone, Sockets: []int{3}, MemoryBytes: new(uint64(4096)), Nearest: new(2),
				Distances: []numa.Distance{{Zone: 2, Value: 10}},
				Hugepages: []numa.Hugepages{{PageBytes: 2 << 20, TotalPages: 5, FreePages: new(uint64(4))}, {PageBytes: 1 << 30}},
			},
			{ID: 4, Kind: numa.CXLZone, Sockets: []int{0, 1}},
		},
		PCI: []numa.PCIFunction{{
			Address: "0000:01:00.0", Kind: numa.GPUFunction, Class: new(uint32(0x30200)),
			Vendor: new(uint16(0x10de)), Device: new(uint16(0x20)), Driver: "nvidia",
			Zone: new(2), Root: "pci0000:00", PhysFn: "0000:01:00.1",
		}},
	}
	for _, want := range []string{
		`{"id":2,"kind":"cpu","socket":3,"cpus":"0-1","memoryBytes":4096,"hugepages":[{"size":"2Mi","total":5,"free":4},` +
			`{"size":"1Gi","total":0,"free":null}],"distances":[{"node":2,"distance":10}],"nearestCPUNode":2,"cpusIn":null}`,
		`{"id":4,"kind":"cxl","socket":null,"cpus":"",`,
		`{"id":0,"socket":null,"die":null,"core":null,"node":null,"l3":null,"siblings":null,"type":null,"online":true,"isolated":false}`,
		`"online":true,"isolated":true}`,
		`{"address":"0000:01:00.0","class":"0x030200","vendor":"0x10de","device":"0x0020","driver":"nvidia","node":2,` +
			`"pcieRoot":"pci0000:00","physfn":"0000:01:00.1","kind":"gpu"}`,
	} {
		if got := document(t, machine); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
