package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// selectors are those with these expressions.
func selectors(expressions ...string) (list []resourceapi.DeviceSelector) {
	for _, expression := range expressions {
		list = append(list, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// expand writes A for the attributes of this driver, and N for those of every driver.
func expand(expressions ...string) (list []string) {
	for _, expression := range expressions {
		list = append(list, strings.NewReplacer("A.", `device.attributes["dra.numa"].`, "N.", `device.attributes["resource.kubernetes.io"].`, "OURS", `device.driver == "dra.numa"`).Replace(expression))
	}
	return list
}

func TestSelectorsAreEvaluated(t *testing.T) {
	for expression, want := range map[string]Gets{
		`OURS && A.kind == "zone"`:                                                                           OnlyZones,
		`"dra.numa" == device.driver && "zone" == A.kind`:                                                    OnlyZones,
		`OURS && A.?kind.orValue("") == "zone"`:                                                              OnlyZones,
		`OURS && device.attributes["dra.numa"]["kind"] == "isolated"`:                                        OnlyZones,
		`device.driver.startsWith("dra.numa") && A.kind in ["zone"]`:                                         OnlyZones,
		`OURS && A.?coreType.orValue("") == "performance"`:                                                   OnlyZones,
		`OURS && A.?coreType.orValue("").startsWith("perf")`:                                                 OnlyZones,
		`A.?memoryTier.orValue(0) > 4`:                                                                       OnlyZones,
		`OURS && !(A.kind in ["gpu", "nic", "nvme", "pci", "cache"])`:                                        OnlyZones,
		`OURS && A.kind == "zone" && N.?numaNode.orValue(-1) == 17`:                                          OnlyZones,
		`OURS && A.kind == "zone" && N.?numaNode.orValue(-1) % 5 == 1`:                                       OnlyZones,
		`OURS && A.kind == "zone" && [3, 9].exists(n, N.?numaNode.orValue(-1) == n)`:                         OnlyZones,
		`cel.bind(a, device.attributes["dra.numa"], OURS && a.kind == "zone" && a.?socket.orValue(-1) == 6)`: OnlyZones,
		`OURS && device.allowMultipleAllocations && A.kind != "cache"`:                                       OnlyZones,
		`OURS && device.capacity["dra.numa"].?cpu.orValue(quantity("0")).compareTo(quantity("8")) >= 0`:      OnlyZones,
		`OURS && device.capacity["dra.numa"].?hugepages1Gi.hasValue()`:                                       OnlyZones,
		`OURS && A.kind == "zone" && A.coreType == "x" && A.exclusivity == "kernel" && A.memoryTier == 4 && A.threadsPerCore == 2 && A.?socket.orValue(-1) == 3 && N.?numaNode.orValue(-1) == 7`: OnlyZones,

		`OURS`:                               Unclear,
		`true`:                               Unclear,
		`OURS || device.driver == "dra.cpu"`: Unclear,
		`device.driver in ["dra.numa", "dra.cpu"]`: Unclear,
		`N.?numaNode.orValue(-1) == 1`:             Unclear,
		`OURS && N.?numaNode.orValue(-1) == 1`:     Unclear,
		`OURS && device.allowMultipleAllocations`:  Unclear, // also caches
		`OURS && A.?l3.orValue(-1) == 1`:           Unclear,
		// No made-up zone matches, but that is no proof.
		`OURS && A.?vendorID.orValue("") == "15b3"`: Unclear,
		`OURS && !device.allowMultipleAllocations`:  Unclear,
		`OURS && A.?pool.orValue("") == "shared"`:   Unclear,
		`nonsense`: Unclear,

		`OURS && A.kind == "gpu"`:    NoZone,
		`OURS && A.kind == "cache"`:  NoZone,
		`device.driver == "dra.cpu"`: NoZone,
		`device.driver == "dra.cpu" && device.attributes["dra.cpu"].kind == "zone"`: NoZone,
		`device.driver == "dra.cpu" || OURS && A.kind == "gpu"`:                     NoZone,
		`false`: NoZone,
	} {
		list := selectors(expand(expression)...)
		if got, _ := New().OfZones(list, nil, nil); got != want {
			t.Errorf("%s: %d, want %d", expression, got, want)
		}
		if got, _ := New().OfZones(nil, list, nil); got != want {
			t.Errorf("%s of a request: %d, want %d", expression, got, want)
		}
	}
}

// asking are capacities that a request asks for.
func asking(names ...resourceapi.QualifiedName) Capacities {
	asked := Capacities{}
	for _, name := range names {
		asked[name] = resource.MustParse("1")
	}
	return asked
}

// PCI functions have no capacities, and caches have others than zones. So a request for
// some does not get the others.
func TestCapacitiesDecideWhatARequestGets(t *testing.T) {
	for _, row := range []struct {
		expression string
		asked      Capacities
		zones      Gets
		caches     bool
	}{
		{`OURS`, nil, Unclear, false},
		{`OURS`, asking("cpu"), OnlyZones, false},
		{`OURS`, asking("dra.numa/cpu"), OnlyZones, false},
		{`OURS`, asking("ways"), NoZone, true},
		{`OURS`, asking("bandwidthMBps"), NoZone, true},
		{`OURS && A.kind == "cache"`, nil, NoZone, true},
		{`OURS && A.kind == "cache"`, asking("cpu"), NoZone, true},
		{`OURS && A.kind == "cache" && A.pool == "shared" && A.l3 == 3`, nil, NoZone, true},
		{`OURS && A.kind == "cache" && N.?numaNode.orValue(-1) == 2`, nil, NoZone, true},
		{`OURS && A.kind == "cache" && device.capacity["dra.numa"].?ways.orValue(quantity("0")).compareTo(quantity("8")) >= 0`, nil, NoZone, true},
		{`OURS && A.kind == "cache" && A.pool == "gold"`, nil, NoZone, false},
		{`OURS && A.kind == "zone"`, asking("ways"), OnlyZones, false},
		{`true`, asking("cpu"), Unclear, false},
		{`true`, asking("ways"), NoZone, false},
	} {
		list := selectors(expand(row.expression)...)
		if got, _ := New().OfZones(nil, list, row.asked); got != row.zones {
			t.Errorf("%s with %v: %d, want %d", row.expression, row.asked, got, row.zones)
		}
		if possible, err := New().Possible(nil, list, row.asked); possible.OnlyCaches() != row.caches || err != nil {
			t.Errorf("%s with %v: %+v, %v, want only caches %t", row.expression, row.asked, possible, err, row.caches)
		}
	}
}

func TestUnknownPool(t *testing.T) {
	for expression, want := range map[string]string{
		`OURS && A.kind == "cache" && A.pool == "shared"`:                      "",
		`OURS && A.kind == "cache" && A.pool == "gold"`:                        "gold",
		`OURS && A.kind == "cache" && A.?pool.orValue("") in ["shared", "os"]`: "os",
		`OURS && A["kind"] == "cache" && A["pool"] == "x"`:                     "x",
		`OURS && A.kind == "pool"`:                                             "",
	} {
		expression = strings.ReplaceAll(expression, "A[", `device.attributes["dra.numa"][`)
		list, got := selectors(append([]string{"true"}, expand(expression)...)...), ""
		if pool := New().Try(nil, list).UnknownPool; pool != nil {
			got = pool.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
		if pool := New().Try(list, nil).UnknownPool; pool != nil {
			t.Errorf("%s of a class: %v, only those of the request are asked for", expression, pool)
		}
	}
}

func TestSelectorsOfClassComeFirst(t *testing.T) {
	class := selectors(expand(`OURS && A.kind == "zone"`, `A.coreType == "standard"`)...)
	for expression, want := range map[string]Gets{
		`A.coreType == "standard"`: OnlyZones, `A.coreType == "performance"`: OnlyZones, `A.kind == "gpu"`: NoZone, `A.memoryTier == 22`: OnlyZones,
	} {
		if got, _ := New().OfZones(class, selectors(expand(expression)...), nil); got != want {
			t.Errorf("%s: %d, want %d", expression, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	const foreign = " of another driver"
	for expression, want := range map[string]string{
		`A.kind == "zone"`: "kind" + foreign,
		`OURS && A.kind == "zone" && A.coreType == "standard"`:                                                    "",
		`OURS && A.coreType == "standard"`:                                                                        "coreType",
		`OURS && A.kind == "zone" && N.numaNode == 1`:                                                             "numaNode",
		`OURS && A.kind == "zone" && device.attributes["dra.net"].numaNode == 1`:                                  "numaNode",
		`OURS && A.kind == "zone" && A.exclusivity == "kernel" && A.coreType == "performance" && N.numaNode == 1`: "numaNode",
		`OURS && A.kind == "zone" && N.?numaNode.hasValue() && N.numaNode == 1`:                                   "",
		`OURS && A.kind == "zone" && has(N.numaNode) && N.numaNode == 1`:                                          "",
		`OURS && A.kind == "zone" && "socket" in device.attributes["dra.numa"] && A.socket == 1`:                  "",
		`OURS && A.kind == "zone" && A.socket == 1`:                                                               "socket",
		`OURS && A.kind == "zone" && A.l3 == 1`:                                                                   "l3",
		`OURS && A.kind == "cache" && A.pool == "shared" && A.l3 == 1`:                                            "",
		`OURS && A.pool == "shared"`:                                                                              "pool",
		`OURS && A.kind == "cache" && N.numaNode == 1`:                                                            "numaNode",
		`OURS && A.kind == "cache" && device.capacity["dra.numa"].ways.compareTo(quantity("8")) >= 0`:             "ways",
		`OURS && A.kind == "gpu" && A.memoryMiB >= 80 * 1024`:                                                     "memoryMiB",
		`OURS && A.kind == "gpu" && A.?memoryMiB.orValue(0) >= 81920`:                                             "",
		`OURS && A.kind == "gpu" && A.vendorID == "10de" && A.model.contains("H100")`:                             "model",
		`OURS && A.kind == "gpu" && A.?uuid.hasValue() && A.model == "x"`:                                         "model",
		`OURS && A.kind == "gpu" && !A.mig`:                                                                       "mig",
		`OURS && A.kind == "nic" && A.linkMbps >= 100000`:                                                         "linkMbps",
		`OURS && A.kind == "nic" && A.rdma`:                                                                       "",
		`OURS && A.kind == "nic" && A.rdma && A.rdmaDevice == "mlx5_0"`:                                           "",
		`OURS && A.kind == "nic" && A.rdmaDevice == "mlx5_0"`:                                                     "rdmaDevice",
		`OURS && A.kind == "nic" && A.virtualFunction && A.physicalFunction == "0000:3b:00.0"`:                    "",
		`OURS && A.kind == "nic" && A.physicalFunction == "0000:3b:00.0"`:                                         "physicalFunction",
		`OURS && A.kind == "nvme" && A.model == "x"`:                                                              "model",
		`OURS && A.kind == "nvme" && A.namespaces > 1`:                                                            "",
		`OURS && A.kind == "pci" && A.iommuGroup == 1`:                                                            "iommuGroup",
		`OURS && A.kind == "pci" && N.pcieRoot == "pci0000:3a"`:                                                   "pcieRoot",
		`OURS && A.kind == "pci" && N.pciBusID == "0000:3a:00.0"`:                                                 "",
		`OURS && A.kind == "zone" && device.capacity["dra.numa"].cpu.compareTo(quantity("8")) >= 0`:               "cpu",
		`N.?numaNode.orValue(-1) == 3 && A.kind == "zone"`:                                                        "kind" + foreign,
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "x"`:                 "",
		`device.attributes["gpu.example.com"].model == "x"`:                                                       "model" + foreign,
	} {
		list := selectors(expand(expression)...)
		var got string
		if missing := New().Try(nil, list).Missing; missing != nil {
			got = missing.Name
			if missing.Foreign {
				got += foreign
			}
		}
		if got != want {
			t.Errorf("%s\nlacks %q, want %q", expression, got, want)
		}
		if missing := New().Try(list, nil).Missing; missing != nil {
			t.Errorf("%s of a class: %v, only those of the request are asked for", expression, missing)
		}
	}
}

// A tenant's selectors cost no more than the scheduler would let them cost.
func TestEffortIsLimited(t *testing.T) {
	var terms []string
	for i := range 40 {
		terms = append(terms, fmt.Sprintf(`(A.?socket.orValue(-1) + N.?numaNode.orValue(-1) * A.?memoryTier.orValue(-1) + A.?l3.orValue(-1)) %% %d != 1`, i+1000))
	}
	s := New()
	if result := s.Try(nil, selectors(expand(strings.Join(terms, " && "))...)); !result.Incomplete {
		t.Errorf("%+v", result)
	}
	if got, _ := s.OfZones(selectors(expand(strings.Join(terms, " && "))...), nil, asking("cpu")); got != Unclear {
		t.Errorf("%d", got)
	}
}

// What is kept of selectors is not taken for what others select, whatever bytes are in
// comments: the second selectors are the first ones, joined.
func TestSelectorsAreKeptApart(t *testing.T) {
	const never, always = `dyn(1) == dyn({true: [1]}) //`, "\n[true][0]"
	for _, between := range []string{"\x00", "\x01", "\x01\x00", "\x00\x01", ""} {
		s := New()
		apart, joined := selectors(never, always), selectors(never+between+always)
		if got, err := s.OfZones(nil, apart, asking("cpu")); got != NoZone || err != nil {
			t.Errorf("%q: apart %d, %v", between, got, err)
		}
		if result := s.Try(nil, apart); result.Zones {
			t.Errorf("%q: apart %+v", between, result)
		}
		if got, err := s.OfZones(nil, joined, asking("cpu")); got != Unclear || err != nil {
			t.Errorf("%q: joined %d, %v", between, got, err)
		}
		if result := s.Try(nil, joined); !result.Zones {
			t.Errorf("%q: joined %+v", between, result)
		}
		if result := s.Try(joined, nil); !result.Zones {
			t.Errorf("%q: of a class %+v", between, result)
		}
	}
}

// Devices of other drivers can have the attributes whose names are not this driver's.
func TestForeignAttributes(t *testing.T) {
	var names []resourceapi.QualifiedName
	for _, row := range foreign() {
		names = append(names, row.Name)
		if row.Absent == "" {
			t.Errorf("no device of another driver lacks %s", row.Name)
		}
	}
	want := append(deviceclasses.NUMANodeAttributes(), deviceclasses.AttributePCIBusID, deviceclasses.AttributePCIeRoot)
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func BenchmarkTry(b *testing.B) {
	class := selectors(expand(`OURS && A.kind == "zone"`)...)
	own := selectors(expand(`OURS && A.?coreType.orValue("") == "standard" && A.?exclusivity.orValue("") == "kernel" && ` +
		`A.?memoryTier.orValue(-1) == 4 && A.?socket.orValue(-1) == 1 && N.?numaNode.orValue(-1) == 1`)...)
	for b.Loop() {
		New().Try(class, own)
	}
}

// Selectors are written by tenants.
func FuzzTry(f *testing.F) {
	for _, expression := range []string{
		`OURS && A.kind == "nic" && A.physicalFunction == "x"`, `A.rdmaDevice != A.driver`, `N.numaNode % 0 == 1`, `device.driver in [device.driver]`,
		`[1, 2].map(n, n + N.numaNode).exists(n, n == A.l3)`, `{"kind": A.kind}["kind"] == "zone"`,
	} {
		f.Add(expand(expression)[0])
	}
	s := New()
	f.Fuzz(func(t *testing.T, expression string) {
		own := selectors(expression)
		first := s.try(nil, own)
		if missing := first.Missing; missing != nil && (missing.Index != 0 || missing.Name == "") {
			t.Errorf("%q: %+v", expression, missing)
		}
		if second := s.try(nil, own); first.Zones != second.Zones || first.Foreign != second.Foreign || first.Functions != second.Functions || first.Caches != second.Caches {
			t.Errorf("%q: %+v, then %+v", expression, first, second)
		}
	})
}
