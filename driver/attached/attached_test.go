package attached

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	samples "github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func selected(t testing.TB, config deviceclasses.DeviceSelection) Selection {
	t.Helper()
	selection, err := NewSelection(config)
	if err != nil {
		t.Fatal(err)
	}
	return selection
}

func everything(t testing.TB) Selection {
	t.Helper()
	return selected(t, deviceclasses.DeviceSelection{Include: []string{"true"}})
}

func names(devices []resourceapi.Device) (names []string) {
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names
}

// The limits are those of ResourceSlices, Kubernetes 1.37.
func TestDevicesAreWhatTheAPITakes(t *testing.T) {
	samples.Each(t, func(t *testing.T, machine numa.Machine) {
		known := map[string]bool{}
		for _, d := range Devices(machine, everything(t)) {
			if problems := validation.IsDNS1123Label(d.Name); len(problems) > 0 || known[d.Name] {
				t.Errorf("name %s: %v, there already: %t", d.Name, problems, known[d.Name])
			}
			known[d.Name] = true
			if len(d.Attributes)+len(d.Capacity) > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
				t.Errorf("%s has %d attributes", d.Name, len(d.Attributes))
			}
			for name, value := range d.Attributes {
				other, id, has := strings.Cut(string(name), "/")
				if !has {
					other, id = deviceclasses.DriverName, string(name)
				}
				if len(validation.IsCIdentifier(id)) > 0 || len(id) > resourceapi.DeviceMaxIDLength || len(validation.IsDNS1123Subdomain(other)) > 0 {
					t.Errorf("%s: attribute %s", d.Name, name)
				}
				if has && other == deviceclasses.DriverName {
					t.Errorf("%s: attribute %s has the driver's domain, which libraries of Kubernetes 1.38 refuse", d.Name, name)
				}
				if value.StringValue != nil && (len(*value.StringValue) > resourceapi.DeviceAttributeMaxValueLength || *value.StringValue == "") {
					t.Errorf("%s: attribute %s is %q", d.Name, name, *value.StringValue)
				}
			}
		}
	})
}

func TestEveryAttributeHasAValue(t *testing.T) {
	rows := deviceclasses.FunctionAttributes()
	for _, kind := range deviceclasses.FunctionKinds() {
		values := sample(kind).values()
		attributes := deviceclasses.DeviceAttributes(rows, values)
		for _, row := range rows {
			if _, has := attributes[row.Name]; has != slices.Contains(row.Kinds, kind) {
				t.Errorf("the sample of kind %s has attribute %s: %t", kind, row.Name, has)
			}
			delete(values, row.Name)
		}
		for name := range values {
			t.Errorf("%s has a value, and is not in the table", name)
		}
	}
}

// Kubernetes takes -1 as a NUMA node that many devices share.
func TestUnknownLocalityIsAbsent(t *testing.T) {
	machine := samples.Machine(t, "epyc-mi300x")
	for _, d := range Devices(machine, everything(t)) {
		for _, name := range []resourceapi.QualifiedName{deviceclasses.AttributeNUMANode, deviceclasses.AttributeNUMANodeNet, deviceclasses.AttributeNUMANodeAMD, deviceclasses.AttributeSocket} {
			node, has := d.Attributes[name]
			if has != (d.Name != "nvme-0000-c1-00-0") || has && *node.IntValue < 0 {
				t.Errorf("%s has %s: %t", d.Name, name, has)
			}
		}
	}
}

func TestKindsGoByClassAndVendor(t *testing.T) {
	for name, row := range map[string]struct {
		class  uint32
		vendor uint16
		want   string
	}{
		"3D controller":              {0x030200, 0x10de, "gpu-0000-01-00-0"},
		"accelerator":                {0x120000, 0x1da3, "gpu-0000-01-00-0"},
		"VGA of NVIDIA":              {0x030000, 0x10de, "gpu-0000-01-00-0"},
		"VGA of a management board":  {0x030000, 0x1a03, "pci-0000-01-00-0"},
		"VGA of a virtual machine":   {0x030000, 0x1234, "pci-0000-01-00-0"},
		"display that is not VGA":    {0x038000, 0x1a03, "gpu-0000-01-00-0"},
		"Ethernet":                   {0x020000, 0x8086, "nic-0000-01-00-0"},
		"InfiniBand, the old class":  {0x0c0600, 0x1077, "nic-0000-01-00-0"},
		"NVMe":                       {0x010802, 0x144d, "nvme-0000-01-00-0"},
		"SATA":                       {0x010601, 0x8086, "pci-0000-01-00-0"},
		"bridge":                     {0x060400, 0x8086, ""},
		"NVSwitch, which is another": {0x068000, 0x10de, ""},
	} {
		function := numa.PCIFunction{Address: "0000:01:00.0", Class: &row.class, Vendor: &row.vendor, Device: new(uint16)}
		function.Kind = readKind(t, row.class, row.vendor)
		got := Devices(numa.Machine{PCI: []numa.PCIFunction{function}}, everything(t))
		if list := strings.Join(names(got), " "); list != row.want {
			t.Errorf("%s is %q, want %q", name, list, row.want)
		}
	}
	if got := Devices(numa.Machine{PCI: []numa.PCIFunction{{Address: "0000:01:00.0", Kind: numa.NICFunction}}}, everything(t)); len(got) > 0 {
		t.Errorf("a function that does not say what it is is %v", names(got))
	}
}

// readKind has the reader say it.
func readKind(t *testing.T, class uint32, vendor uint16) numa.FunctionKind {
	t.Helper()
	machine := fake.Machine{PCI: []fake.Function{{Address: "0000:01:00.0", Class: class, Vendor: vendor, Zone: fake.NoZone}}}
	read, err := numa.Read(machine.FS())
	if err != nil {
		t.Fatal(err)
	}
	return read.PCI[len(read.PCI)-1].Kind
}

func TestNamesOfFarDomainsAreLabels(t *testing.T) {
	for address, want := range map[string]string{
		"0000:17:00.0": "gpu-0000-17-00-0", "10000:e1:1f.7": "gpu-10000-e1-1f-7", "ffffffff:ff:1f.7": "gpu-ffffffff-ff-1f-7",
	} {
		if got := name(deviceclasses.KindGPU, address); got != want || len(validation.IsDNS1123Label(got)) > 0 {
			t.Errorf("name of %s is %s, want %s", address, got, want)
		}
	}
}

func TestLinkIsThatOfTheWeakerEnd(t *testing.T) {
	slow := &numa.Link{SpeedGTps: new(2.5), Width: new(8), MaxSpeedGTps: new(32.0), MaxWidth: new(16)}
	machine := numa.Machine{PCI: []numa.PCIFunction{
		{Address: "0000:00:01.0", Link: &numa.Link{MaxSpeedGTps: new(16.0), MaxWidth: new(32)}},
		{Address: "0000:01:00.0", Parent: "0000:00:01.0", Link: slow},
		{Address: "0000:01:00.1", Parent: "0000:00:01.0", PhysFn: "0000:01:00.0", Link: &numa.Link{}},
		{Address: "0000:02:00.0", Link: slow},
		{Address: "0000:03:00.0", Parent: "0000:00:01.0"},
		{Address: "0000:04:00.0", Link: &numa.Link{SpeedGTps: new(8.0)}},
	}}
	want := []string{"", "16000 16", "16000 16", "32000 16", "0 0", "0 0"}
	for i := 1; i < len(machine.PCI); i++ {
		speed, width := link(machine, &machine.PCI[i])
		if got := fmt.Sprint(ptr.Deref(speed, 0), ptr.Deref(width, 0)); got != want[i] {
			t.Errorf("link of %s is %s, want %s", machine.PCI[i].Address, got, want[i])
		}
	}
}

// A claim that does not care gets what costs others least.
func TestOrderIsPackingPolicy(t *testing.T) {
	machine := samples.Machine(t, "epyc-mi300x")
	got := names(Devices(machine, selected(t, deviceclasses.DeviceSelection{Presets: []string{"nvme", "vf", "nic"}})))
	want := []string{}
	for _, bus := range []string{"09", "89"} { // virtual functions, by card
		for vf := 1; vf <= 8; vf++ {
			want = append(want, fmt.Sprintf("nic-0000-%s-%02x-%x", bus, vf>>3, vf&7))
		}
	}
	want = append(want, "nic-0000-09-00-0", "nic-0000-89-00-0", "nvme-0000-c1-00-0", "nvme-0000-41-00-0") // the last but one is nowhere
	if !slices.Equal(got, want) {
		t.Errorf("order is %v\nwant %v", got, want)
	}
}

func TestProductsHaveNames(t *testing.T) {
	want := map[string]string{
		"gpu-0000-16-00-0": "NVIDIA Corporation, GH100 [H100 SXM5 80GB]",
		"nic-0000-18-00-0": "Mellanox Technologies, MT2910 Family [ConnectX-7]",
		"pci-0000-02-00-0": "ASPEED Technology, Inc., ASPEED Graphics Family",
	}
	got := map[string]string{}
	for _, d := range Devices(samples.Machine(t, "dgx-h100"), everything(t)) {
		if _, wanted := want[d.Name]; wanted {
			got[d.Name] = stringOf(d, deviceclasses.AttributeVendor) + ", " + stringOf(d, deviceclasses.AttributeProduct)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names of products (-want +got):\n%s", diff)
	}
	nobody := numa.PCIFunction{Address: "0000:01:00.0", Class: new(uint32), Vendor: new(uint16(0xfff0)), Device: new(uint16(0x12))}
	f, _ := newFunction(numa.Machine{}, &nobody)
	if f.vendorName != "fff0" || f.product != "0012" {
		t.Errorf("what nobody knows is %q, %q", f.vendorName, f.product)
	}
}
