package fake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func preset(t testing.TB, name string) Machine {
	t.Helper()
	for _, p := range Presets() {
		if p.Name == name {
			return p.Machine
		}
	}
	t.Fatalf("no preset %s", name)
	return Machine{}
}

func mustRead(t testing.TB, m Machine) numa.Machine {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	read, err := numa.Read(m.FS())
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// shapes are the presets in numbers, counted by hand: CPUs; zones with their kinds;
// sockets, dies, cores and the largest number of their threads; L2s and L3s; memory of
// all zones.
var shapes = map[string]string{
	"rig":                    "cpus 0-15; zones 0-3 cpu; 2 sockets, 2 dies, 8 cores of 2; 8 L2s, 4 L3s; 4 GiB",
	"intel-2s":               "cpus 0-95; zones 0-1 cpu; 2 sockets, 2 dies, 48 cores of 2; 48 L2s, 2 L3s; 768 GiB",
	"intel-2s-snc2":          "cpus 0-95; zones 0-3 cpu; 2 sockets, 2 dies, 48 cores of 2; 48 L2s, 2 L3s; 768 GiB",
	"intel-2s-snc3":          "cpus 0-95; zones 0-5 cpu; 2 sockets, 2 dies, 48 cores of 2; 48 L2s, 2 L3s; 768 GiB",
	"xeon-max-cache":         "cpus 0-127; zones 0-7 cpu; 2 sockets, 2 dies, 64 cores of 2; 64 L2s, 2 L3s; 1024 GiB",
	"epyc-2s-nps1":           "cpus 0-127; zones 0-1 cpu; 2 sockets, 2 dies, 64 cores of 2; 64 L2s, 16 L3s; 1024 GiB",
	"epyc-2s-nps4":           "cpus 0-255; zones 0-7 cpu; 2 sockets, 2 dies, 128 cores of 2; 128 L2s, 16 L3s; 1024 GiB",
	"epyc-mi300x":            "cpus 0-383; zones 0-1 cpu; 2 sockets, 2 dies, 192 cores of 2; 192 L2s, 24 L3s; 2304 GiB",
	"dgx-h100":               "cpus 0-223; zones 0-1 cpu; 2 sockets, 2 dies, 112 cores of 2; 112 L2s, 2 L3s; 2048 GiB",
	"grace-hopper":           "cpus 0-71; zones 0 cpu, 1 gpu, 2-8 initiator; 1 sockets, 0 dies, 72 cores of 1; 72 L2s, 1 L3s; 576 GiB",
	"hybrid-laptop":          "cpus 0-19; zones 0 cpu; 1 sockets, 1 dies, 14 cores of 2; 8 L2s, 1 L3s; 32 GiB",
	"hybrid-laptop-lowpower": "cpus 0-15; zones 0 cpu; 1 sockets, 1 dies, 16 cores of 1; 9 L2s, 1 L3s; 32 GiB",
	"cxl-expander":           "cpus 0-63; zones 0-1 cpu, 2 cxl; 2 sockets, 2 dies, 32 cores of 2; 32 L2s, 2 L3s; 640 GiB",
	"offline-and-hotplug":    "cpus 0-2,4-8,10-18,20-27; zones 0-1 cpu; 2 sockets, 2 dies, 15 cores of 2; 15 L2s, 2 L3s; 128 GiB",
	"sparse-nodes":           "cpus 0-15; zones 0-1,33,72 cpu, 34 memory, 45 empty; 4 sockets, 4 dies, 16 cores of 1; 16 L2s, 4 L3s; 44 GiB",
	"no-numa":                "cpus 0-7; zones 0 cpu; 1 sockets, 1 dies, 4 cores of 2; 4 L2s, 1 L3s; 8 GiB",
	"512cpus":                "cpus 0-511; zones 0-1 cpu; 2 sockets, 2 dies, 256 cores of 2; 256 L2s, 32 L3s; 1536 GiB",
	"1024cpus-16nodes":       "cpus 0-1023; zones 0-15 cpu; 8 sockets, 8 dies, 512 cores of 2; 512 L2s, 64 L3s; 4096 GiB",
}

// shape draws a machine as shapes are written.
func shape(m numa.Machine) string {
	kinds := map[numa.ZoneKind][]int{}
	var order []numa.ZoneKind
	memoryBytes := uint64(0)
	for _, z := range m.Zones {
		if kinds[z.Kind] == nil {
			order = append(order, z.Kind)
		}
		kinds[z.Kind] = append(kinds[z.Kind], z.ID)
		if z.MemoryBytes != nil {
			memoryBytes += *z.MemoryBytes
		}
	}
	var zones []string
	for _, kind := range order {
		zones = append(zones, fmt.Sprintf("%s %s", setOf(kinds[kind]), kind))
	}
	sockets, dies, threads := map[int]bool{}, map[string]bool{}, 0
	for _, core := range m.Cores {
		sockets[*core.Socket] = true
		if core.Die != nil {
			dies[fmt.Sprint(*core.Socket, *core.Die)] = true
		}
		threads = max(threads, core.CPUs.Size())
	}
	return fmt.Sprintf("cpus %s; zones %s; %d sockets, %d dies, %d cores of %d; %d L2s, %d L3s; %d GiB", m.Online, strings.Join(zones, ", "),
		len(sockets), len(dies), len(m.Cores), threads, len(m.L2s), len(m.L3s), memoryBytes/gib)
}

func TestPresetsReadAsTheyAreDeclared(t *testing.T) {
	presets := Presets()
	for _, p := range presets {
		t.Run(p.Name, func(t *testing.T) {
			m := mustRead(t, p.Machine)
			if got := shape(m); got != shapes[p.Name] {
				t.Errorf("read %s\nwant %s", got, shapes[p.Name])
			}
			checkZones(t, m, p.Machine)
			checkFunctions(t, m, p.Machine)
			checkResctrl(t, m, p.Machine)
		})
	}
	if len(presets) != len(shapes) {
		t.Errorf("%d presets, %d shapes", len(presets), len(shapes))
	}
}

// checkZones compares what a declaration says of zones.
func checkZones(t *testing.T, m numa.Machine, declared Machine) {
	t.Helper()
	for i, z := range m.Zones {
		j := slices.IndexFunc(declared.ExtraZones, func(extra Zone) bool { return extra.ID == z.ID })
		want := Zone{ID: z.ID, MemoryBytes: declared.MemoryBytes, Near: z.ID, Performance: declared.Performance}
		if bytes, other := declared.ZoneMemory[z.ID]; other {
			want.MemoryBytes = bytes
		}
		pools := declared.Hugepages
		if j >= 0 {
			want, pools = declared.ExtraZones[j], nil
		}
		if z.MemoryBytes == nil || *z.MemoryBytes != want.MemoryBytes {
			t.Errorf("zone %d has %v bytes, want %d", z.ID, z.MemoryBytes, want.MemoryBytes)
		}
		if z.Nearest == nil || *z.Nearest != want.Near {
			t.Errorf("the nearest zone to %d is %v, want %d", z.ID, z.Nearest, want.Near)
		}
		for _, pool := range pools {
			k := slices.IndexFunc(z.Hugepages, func(h numa.Hugepages) bool { return h.PageBytes == pool.PageBytes })
			if want.MemoryBytes > 0 && (k < 0 || z.Hugepages[k].TotalPages != pool.Pages || *z.Hugepages[k].FreePages != pool.FreePages) {
				t.Errorf("zone %d has hugepages %+v, want %+v", z.ID, z.Hugepages, pool)
			}
		}
		for column, distance := range z.Distances {
			if declared.Distances != nil && distance.Value != declared.Distances[i][column] {
				t.Errorf("zone %d is %d from %d, want %d", z.ID, distance.Value, distance.Zone, declared.Distances[i][column])
			}
		}
		if p, w := z.Performance, want.Performance; (p == nil) != (w == nil || want.MemoryBytes == 0) ||
			p != nil && (Performance{*p.ReadBandwidthMiBps, *p.WriteBandwidthMiBps, *p.ReadLatencyNs, *p.WriteLatencyNs} != *w) {
			t.Errorf("performance of zone %d is %+v, want %+v", z.ID, p, w)
		}
		if (z.Watermarks == nil) != (want.MemoryBytes == 0) {
			t.Errorf("zone %d of %d bytes has watermarks %+v", z.ID, want.MemoryBytes, z.Watermarks)
		}
		if n := len(z.SideCaches); n != oneIf(declared.SideCacheBytes > 0) || n == 1 && *z.SideCaches[0].SizeBytes != declared.SideCacheBytes {
			t.Errorf("zone %d has side caches %+v", z.ID, z.SideCaches)
		}
		tier := max(want.Tier, plainTier)
		if known := !declared.NoNUMA && want.MemoryBytes > 0; (z.MemoryTier != nil) != known || known && *z.MemoryTier != tier {
			t.Errorf("zone %d is in memory tier %v, want %d", z.ID, z.MemoryTier, tier)
		}
	}
}

// checkFunctions compares the declared PCI functions, and counts theirs and their ports.
func checkFunctions(t *testing.T, m numa.Machine, declared Machine) {
	t.Helper()
	got, buses, count := map[string]numa.PCIFunction{}, map[string]bool{}, 0
	for _, f := range m.PCI {
		got[f.Address] = f
	}
	for _, want := range declared.PCI {
		f := got[want.Address]
		buses[want.Address[:7]] = true
		count += 1 + want.VFs
		port := want.Address[:5] + fmt.Sprintf("%02x:01.0", busOf(t, want.Address)-1)
		if want.Port != nil {
			port = want.Port.Address
		}
		root := "pci" + port[:7]
		if f.Root != root || f.Parent != port || *f.Class != want.Class || *f.Vendor != want.Vendor || *f.Device != want.Device || f.Driver != want.Driver {
			t.Errorf("read %+v\nwant %+v below %s", f, want, root)
		}
		wantZone := want.Zone
		if len(m.Zones) == 1 {
			wantZone = 0
		}
		if (f.Zone == nil) != (wantZone == NoZone) || f.Zone != nil && *f.Zone != wantZone {
			t.Errorf("%s is on zone %v, want %d", f.Address, f.Zone, wantZone)
		}
		if names := slices.Concat(f.Net, f.Infiniband, f.NVMe, f.DRM, f.VFIO); len(names) != len(want.Children) {
			t.Errorf("%s has %q, want %q", f.Address, names, want.Children)
		}
		if want.SpeedGTps != 0 && (f.Link == nil || *f.Link.SpeedGTps != want.SpeedGTps || *f.Link.Width != want.Width) {
			t.Errorf("%s has link %+v, want %v GT/s ×%d", f.Address, f.Link, want.SpeedGTps, want.Width)
		}
		if (f.TotalVFs == nil) != (want.TotalVFs == 0) || len(f.VirtFns) != want.VFs || (f.IOMMU != nil) != declared.IOMMU {
			t.Errorf("%s has total %v, virtual functions %v, IOMMU group %v; want %+v", f.Address, f.TotalVFs, f.VirtFns, f.IOMMU, want)
		}
		checkTold(t, f, want)
		for _, address := range f.VirtFns {
			vf := got[address]
			if vf.PhysFn != f.Address || *vf.Device != want.VFDevice || vf.Driver != want.VFDriver || vf.Zone == nil || *vf.Zone != wantZone ||
				vf.Root != root || len(vf.VFIO) != 1 || vf.Link != nil && vf.Link.SpeedGTps != nil {
				t.Errorf("virtual function %+v of %+v", vf, want)
			}
		}
	}
	if len(m.PCI) != count+len(buses) {
		t.Errorf("%d PCI functions, want %d and %d ports", len(m.PCI), count, len(buses))
	}
}

// checkTold compares what the driver tells of a function.
func checkTold(t *testing.T, f numa.PCIFunction, want Function) {
	t.Helper()
	architecture := map[int]string{90402: "gfx942"}[want.GFXTarget]
	if f.Model != want.Model || f.UUID != want.UUID || f.Architecture != architecture || len(f.Namespaces) != want.Namespaces ||
		(f.MemoryBytes == nil) != (want.MemoryBytes == 0) || f.MemoryBytes != nil && *f.MemoryBytes != want.MemoryBytes ||
		(f.LinkMbps == nil) != (want.LinkMbps == 0) || f.LinkMbps != nil && *f.LinkMbps != want.LinkMbps {
		t.Errorf("of %s its driver tells %+v, want %+v", f.Address, f, want)
	}
}

func busOf(t *testing.T, address string) (bus int) {
	t.Helper()
	if _, err := fmt.Sscanf(address[5:7], "%x", &bus); err != nil {
		t.Fatal(err)
	}
	return bus
}

func checkResctrl(t *testing.T, m numa.Machine, declared Machine) {
	t.Helper()
	got, want := "none", "none"
	if r := m.Resctrl; r != nil {
		got = fmt.Sprintf("%+v", *r)
	}
	if r := declared.Resctrl; r != nil {
		want = fmt.Sprintf("%+v", numa.Resctrl{
			Caches: []numa.CacheAllocation{{
				Name: "L3", CLOSIDs: r.CLOSIDs, Mask: 1<<r.Ways - 1, MinBits: 1, ShareableMask: r.ShareableMask, Sparse: r.Sparse,
			}},
			Bandwidths: []numa.BandwidthAllocation{{
				Name: "MB", CLOSIDs: r.CLOSIDs, MinBandwidth: r.MinBandwidth, Granularity: r.BandwidthStep, Linear: true,
			}},
			Monitors: []numa.Monitoring{{Name: "L3_MON", RMIDs: r.RMIDs, Features: r.Features}},
		})
	}
	if got != want {
		t.Errorf("resctrl is %s\nwant %s", got, want)
	}
}

// core returns the core of a CPU in one line.
func core(t *testing.T, m numa.Machine, cpu int) string {
	t.Helper()
	for _, c := range m.Cores {
		if c.CPUs.Contains(cpu) {
			line := fmt.Sprintf("zone %d socket %d core %d %s cpus %s", c.Zone, *c.Socket, *c.ID, c.Type, c.CPUs)
			for _, cache := range []struct {
				name string
				id   *int
				list []numa.Cache
			}{{"L2", c.L2, m.L2s}, {"L3", c.L3, m.L3s}} {
				if cache.id == nil {
					line += " no " + cache.name
					continue
				}
				i := slices.IndexFunc(cache.list, func(l numa.Cache) bool { return l.ID == *cache.id })
				line += fmt.Sprintf(" %s %d of %s", cache.name, *cache.id, cache.list[i].CPUs)
			}
			return line
		}
	}
	t.Fatalf("cpu %d is in no core", cpu)
	return ""
}

func TestCPUsAreWhereTheirNumberingPutsThem(t *testing.T) {
	for _, row := range []struct {
		preset string
		cpu    int
		want   string
	}{
		{"intel-2s", 3, "zone 1 socket 1 core 1 standard cpus 3,51 L2 33 of 3,51 L3 1 of " + everySecond(1, 95)},
		{"intel-2s-snc2", 12, "zone 1 socket 0 core 12 standard cpus 12,60 L2 12 of 12,60 L3 0 of 0-23,48-71"},
		{"intel-2s-snc3", 40, "zone 5 socket 1 core 16 standard cpus 40,88 L2 48 of 40,88 L3 1 of 24-47,72-95"},
		{"epyc-2s-nps4", 255, "zone 7 socket 1 core 63 standard cpus 127,255 L2 127 of 127,255 L3 15 of 120-127,248-255"},
		{"grace-hopper", 71, "zone 0 socket 0 core 71 standard cpus 71 L2 71 of 71 L3 0 of 0-71"},
		{"hybrid-laptop", 3, "zone 0 socket 0 core 4 performance cpus 2-3 L2 1 of 2-3 L3 0 of 0-19"},
		{"hybrid-laptop", 18, "zone 0 socket 0 core 30 efficient cpus 18 L2 7 of 16-19 L3 0 of 0-19"},
		{"hybrid-laptop-lowpower", 5, "zone 0 socket 0 core 20 performance cpus 5 L2 5 of 5 L3 0 of 0-13"},
		{"hybrid-laptop-lowpower", 15, "zone 0 socket 0 core 33 efficient cpus 15 L2 8 of 14-15 no L3"},
		{"offline-and-hotplug", 25, "zone 1 socket 1 core 1 standard cpus 25 L2 9 of 25 L3 1 of 8,10-15,24-27"},
		{"offline-and-hotplug", 14, "zone 1 socket 1 core 6 standard cpus 14 L2 14 of 14 L3 1 of 8,10-15,24-27"},
		{"1024cpus-16nodes", 1023, "zone 15 socket 7 core 63 standard cpus 511,1023 L2 511 of 511,1023 L3 63 of 504-511,1016-1023"},
	} {
		if got := core(t, mustRead(t, preset(t, row.preset)), row.cpu); got != row.want {
			t.Errorf("cpu %d of %s is in\n%s\nwant\n%s", row.cpu, row.preset, got, row.want)
		}
	}
}

func everySecond(first, last int) string {
	var ids []string
	for id := first; id <= last; id += 2 {
		ids = append(ids, fmt.Sprint(id))
	}
	return strings.Join(ids, ",")
}

func TestOddCPUsAreToldApart(t *testing.T) {
	m := mustRead(t, preset(t, "offline-and-hotplug"))
	for name, row := range map[string]struct {
		got  *cpuset.Set
		want string
	}{
		"present":   {&m.Present, "0-27"},
		"isolated":  {m.Isolated, "4-5,20-21"},
		"nohz_full": {m.NoHZFull, "4-5,20-21"},
	} {
		if row.got == nil || row.got.String() != row.want {
			t.Errorf("%s cpus are %v, want %s", name, row.got, row.want)
		}
	}
	for _, core := range mustRead(t, preset(t, "epyc-2s-nps1")).Cores {
		if core.Cluster != nil {
			t.Fatalf("core %d is in cluster %d; 65535 is what x86 writes for none", *core.ID, *core.Cluster)
		}
	}
}

func TestDefaultDistancesFollowTheSockets(t *testing.T) {
	for name, want := range map[string][]string{
		"intel-2s-snc2": {"10 12 21 21", "12 10 21 21", "21 21 10 12", "21 21 12 10"},
		"epyc-2s-nps1":  {"10 32", "32 10"},
		"sparse-nodes": {
			"10 21 21 28 28 21", "21 10 21 28 28 21", "21 21 10 17 28 21", "28 28 17 10 28 28", "28 28 28 28 10 17", "21 21 21 28 17 10",
		},
	} {
		for i, z := range mustRead(t, preset(t, name)).Zones {
			var row []string
			for _, distance := range z.Distances {
				row = append(row, fmt.Sprint(distance.Value))
			}
			if got := strings.Join(row, " "); got != want[i] {
				t.Errorf("distances of zone %d of %s are %s, want %s", z.ID, name, got, want[i])
			}
		}
	}
}
