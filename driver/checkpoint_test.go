package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/golden"
)

func sampleCheckpoint() Checkpoint {
	latency := 0
	return Checkpoint{Version: checkpointVersion, BootID: "boot-1", Interrupts: interrupts.First{
		Default: cpuset.New(0, 1, 2, 3), Affinities: []interrupts.Affinity{{CPUs: cpuset.New(0, 1), Interrupts: []int{0, 24, 25}}},
	}, Uncore: []uncore.Held{
		{ID: uncore.ID{Package: 0, Die: 1}, FirstKHz: 800_000, WasKHz: 1_200_000, WantKHz: 2_000_000},
		{ID: uncore.ID{Package: 1, Die: 0}, FirstKHz: 800_000, WantKHz: 2_000_000, GotKHz: 1_900_000},
	}, Defaults: []Default{{
		Asked: deviceclasses.PerformanceSettings{MaxFrequency: "base"}, Applied: true,
		Changes: cpufreq.Changes{Frequencies: []cpufreq.Change{{
			Policies: cpuset.New(0, 1), Driver: "intel_pstate", Before: cpufreq.Values{Governor: "powersave", MinKHz: 900_000, MaxKHz: 3_600_000},
			Want: cpufreq.Values{MaxKHz: 2_400_000}, Got: cpufreq.Values{MaxKHz: 2_400_000},
		}}},
	}}, Grants: []Grant{
		{UID: "uid-a", Namespace: "default", Name: "a", Order: 2, Shares: []Share{
			{Request: "main/sub", Device: "numa-1", Kind: &ZoneShare{Zone: 1, CPUs: cpuset.New(4, 5), Why: "for a reason", MemoryBytes: 1 << 30, IdleCPUs: cpuset.New(5), Partition: "isolated", Scope: ScopePod, Mixed: true, SharedCPUs: cpuset.New(0, 1, 6), MemoryPolicy: "bind"}},
			{Request: "memory", Device: "numa-2", Kind: &ZoneShare{Zone: 2, HugepageBytes: map[string]uint64{"2Mi": 4 << 20, "1Gi": 1 << 30}}},
		}},
		{UID: "uid-b", Namespace: "default", Name: "b", Order: 1, Shares: []Share{
			{Request: "r", Device: "numa-0", ShareID: "s", Kind: &ZoneShare{CPUs: cpuset.New(2, 3)}},
			{Request: "s", Device: "socket-1", Kind: &ZoneShare{Zone: 2, Zones: []int{2, 3}, CPUs: cpuset.New(8)}},
		}},
		{UID: "uid-c", Namespace: "default", Name: "c", Order: 3, Shares: []Share{
			{Request: "drive", Device: "nvme-0000-3b-00-0", Kind: &FunctionShare{Address: "0000:3b:00.0", Kind: attached.NVMe, Nodes: []devnode.Node{
				{Path: "/dev/nvme0", Type: "c", Major: 240, Minor: 0}, {Path: "/dev/nvme0n1", Type: "b", Major: 259, Minor: 3},
			}}},
			{Request: "card", Device: "nic-0000-5e-00-2", Kind: &FunctionShare{Address: "0000:5e:00.2", Kind: attached.NIC, PhysFn: "0000:5e:00.0", Interfaces: []string{"ens1v0"}}},
			{Request: "bound", Device: "nvme-0000-3d-00-0", Kind: &FunctionShare{Address: "0000:3d:00.0", Kind: attached.NVMe, Driver: "vfio-pci", Before: binding.State{Driver: "nvme", Override: "nvme"}}},
			{Request: "gpu", Device: "gpu-0000-17-00-0", Kind: &FunctionShare{Address: "0000:17:00.0", Kind: attached.GPU, CDIDevice: "nvidia.com/gpu=GPU-1111"}},
		}},
		{UID: "uid-d", Namespace: "default", Name: "d", Order: 4, Shares: []Share{
			{Request: "cpus", Device: "numa-3", Kind: &ZoneShare{Zone: 3, CPUs: cpuset.New(12, 13)}},
			{Request: "ways", Device: "cache-3-besteffort", ShareID: "w", Kind: &CacheShare{L3: 3, Pool: "besteffort", Group: 2, CPUs: "cpus", Ways: 2, MaxWays: 5, BandwidthPercent: 40, Asked: deviceclasses.CacheAmounts{BandwidthPercent: 35}}},
			{Request: "more", Device: "cache-0-shared", Kind: &CacheShare{Pool: "shared", Group: 1, CPUs: "main/sub"}},
		}},
		{UID: "uid-e", Namespace: "default", Name: "e", Order: 5, Shares: []Share{
			{Request: "fast", Device: "numa-3", Kind: &ZoneShare{Zone: 3, CPUs: cpuset.New(14, 15), Partition: "root", Performance: &Performance{
				Asked: deviceclasses.PerformanceSettings{MinFrequency: "1.5x base", Governor: "performance", IdleLatency: &latency, Interrupts: "away"},
				Changes: cpufreq.Changes{
					Frequencies: []cpufreq.Change{{
						Policies: cpuset.New(14, 15), Driver: "intel_pstate",
						Before: cpufreq.Values{Governor: "powersave", EnergyPreference: "balance_performance", MinKHz: 800_000, MaxKHz: 3_700_000},
						Want:   cpufreq.Values{Governor: "performance", EnergyPreference: "performance", MinKHz: 3_300_000},
						Got:    cpufreq.Values{Governor: "performance", EnergyPreference: "performance", MinKHz: 3_000_000},
					}},
					Idle: []cpufreq.Limit{{CPUs: cpuset.New(14, 15), Before: "0", Want: "n/a"}},
				},
				Applied: true, Staying: []interrupts.Refusal{{Number: 33, Name: "nvme0q14", Why: interrupts.Managed}},
			}}},
			{Request: "planned", Device: "numa-3", Kind: &ZoneShare{Zone: 3, CPUs: cpuset.New(16), Performance: &Performance{Asked: deviceclasses.PerformanceSettings{Interrupts: "own"}}}},
		}},
		{UID: "uid-f", Namespace: "default", Name: "f", Order: 6, Shares: []Share{
			{Request: "mesh", Device: "numa-3", Kind: &ZoneShare{Zone: 3, CPUs: cpuset.New(17), Performance: &Performance{
				Asked: deviceclasses.PerformanceSettings{MinUncoreFrequency: "2GHz"}, Applied: true,
				Uncore: []uncore.Demand{{ID: uncore.ID{Package: 1, Die: 0}, WantKHz: 2_000_000, GotKHz: 1_900_000}},
			}}},
		}},
	}}
}

// sampleV6 is what version 6 could record of the sample.
func sampleV6() Checkpoint {
	sample := sampleCheckpoint()
	sample.Version, sample.Uncore, sample.Defaults = checkpointV6, nil, nil
	sample.Grants = sample.Grants[:5]
	return sample
}

// sampleV5 is what version 5 could record of the sample.
func sampleV5() Checkpoint {
	sample := sampleV6()
	sample.Version = checkpointV5
	sample.Grants, sample.Interrupts = sample.Grants[:4], interrupts.First{}
	return sample
}

// sampleV4 is what version 4 could record of the sample.
func sampleV4() Checkpoint {
	sample := sampleV5()
	sample.Version = checkpointV4
	sample.Grants = sample.Grants[:3]
	return sample
}

// sampleV3 is what version 3 could record of the sample.
func sampleV3() Checkpoint {
	sample := sampleV4()
	sample.Version = checkpointV3
	sample.Grants = sample.Grants[:2]
	sample.Grants[1].Shares = sample.Grants[1].Shares[:1]
	return sample
}

// sampleV2 is what version 2 could record of the sample.
func sampleV2() Checkpoint {
	sample := sampleV3()
	sample.Version = checkpointV2
	sample.Grants[0].Shares[0].Zone().IdleCPUs = cpuset.Set{}
	return sample
}

// sampleV1 is what version 1 could record of the sample.
func sampleV1() Checkpoint {
	sample := sampleV3()
	sample.Version = checkpointV1
	for i := range sample.Grants {
		grant := &sample.Grants[i]
		grant.Order = uint64(i) + 1
		for j := range grant.Shares {
			share := &grant.Shares[j]
			*share = Share{Request: share.Request, Device: share.Device, ShareID: share.ShareID, Kind: &ZoneShare{Zone: share.Zone().Zone, CPUs: share.CPUs()}}
		}
	}
	return sample
}

// Each version that was ever written stays readable, from the exact text in which it
// was written.
func TestEveryVersionOfTheCheckpointRoundTrips(t *testing.T) {
	// The files of older versions stay as they are, because nothing writes them any more.
	golden.Check(t, checkpointFile(checkpointVersion), string(encodeCheckpoint(sampleCheckpoint())))
	samples := map[int]Checkpoint{checkpointV1: sampleV1(), checkpointV2: sampleV2(), checkpointV3: sampleV3(), checkpointV4: sampleV4(), checkpointV5: sampleV5(), checkpointV6: sampleV6(), checkpointVersion: sampleCheckpoint()}
	for version := checkpointV1; version <= checkpointVersion; version++ {
		read, err := DecodeCheckpoint(checkpointBytes(t, version))
		if want, ok := samples[version]; !ok || err != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("version %d is read as %+v, %v, want %+v", version, read, err, want)
		}
		read.Version = checkpointVersion
		again, err := DecodeCheckpoint(encodeCheckpoint(read))
		if err != nil || !reflect.DeepEqual(again, read) {
			t.Errorf("version %d, written and read again: %+v, %v, want %+v", version, again, err, read)
		}
	}
}

func TestAVersionHasOnlyWhatItCouldRecord(t *testing.T) {
	for want, c := range map[string]Checkpoint{
		"version 5 has interrupts, which version 6 added": {Version: checkpointV5, Interrupts: sampleCheckpoint().Interrupts},
		"version 6 has uncore, which version 7 added":     {Version: checkpointV6, Uncore: sampleCheckpoint().Uncore},
		"version 6 has defaults, which version 7 added":   {Version: checkpointV6, Defaults: sampleCheckpoint().Defaults},
	} {
		c.Grants = []Grant{}
		if _, err := DecodeCheckpoint(encodeCheckpoint(c)); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// The driver builds the text itself, in a tenth of the time, but the text is the same
// as that of the types and their tags.
func TestCheckpointIsTheJSONOfItsTypes(t *testing.T) {
	strange := sampleCheckpoint()
	strange.BootID = "a\"b\\c\n<&>\u2028\x7f\xff\u00e9"
	full := Checkpoint{}
	fill(reflect.ValueOf(&full).Elem())
	full.Grants[0].Shares[0].Kind = filled[FunctionShare]()
	withCache := Checkpoint{}
	fill(reflect.ValueOf(&withCache).Elem())
	withCache.Grants[0].Shares[0].Kind = filled[CacheShare]()
	for _, c := range []Checkpoint{full, withCache, sampleCheckpoint(), sampleV5(), sampleV4(), sampleV3(), sampleV2(), sampleV1(), strange, {Version: 7, Grants: []Grant{}}, {Grants: []Grant{{}, {Shares: []Share{}}}}} {
		state, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(envelope{Version: c.Version, SHA256: checksum(state), State: state})
		if err != nil {
			t.Fatal(err)
		}
		if got := encodeCheckpoint(c); string(got) != string(want)+"\n" {
			t.Errorf("written\n%s\nwant\n%s", got, want)
		}
	}
}

// filled returns a kind of share in which every field is different from zero.
func filled[T any]() *T {
	kind := new(T)
	fill(reflect.ValueOf(kind).Elem())
	return kind
}

// fill makes every field different from zero, including fields of later versions.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[Kind]():
		v.Set(reflect.ValueOf(filled[ZoneShare]()))
	case v.Type() == reflect.TypeFor[cpuset.Set]():
		v.Set(reflect.ValueOf(cpuset.New(1)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.CanUint():
		v.SetUint(1)
	case v.CanInt():
		v.SetInt(1)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString("text")
	default:
		panic("fill cannot make a " + v.Type().String())
	}
}

// equal has to compare every field: a change that it misses is not written.
func TestEveryFieldOfAShareCounts(t *testing.T) {
	var full Share
	fill(reflect.ValueOf(&full).Elem())
	for name, without := range map[string]Share{
		"request": {"", full.Device, full.ShareID, full.Kind}, "device": {full.Request, "", full.ShareID, full.Kind},
		"share id": {full.Request, full.Device, "", full.Kind}, "kind": {full.Request, full.Device, full.ShareID, nil},
		"zone": {full.Request, full.Device, full.ShareID, filled[FunctionShare]()},
	} {
		if !full.Equal(full) || full.Equal(without) || without.Equal(full) {
			t.Errorf("shares with and without %s are equal", name)
		}
	}
	everyFieldCounts(t, filled[ZoneShare]())
	everyFieldCounts(t, filled[FunctionShare]())
}

func everyFieldCounts[T any](t *testing.T, full *T) {
	t.Helper()
	for i := range reflect.TypeFor[T]().NumField() {
		less := *full
		reflect.ValueOf(&less).Elem().Field(i).SetZero()
		if any(&less).(Kind).equal(any(full).(Kind)) {
			t.Errorf("%Ts with and without %s are equal", full, reflect.TypeFor[T]().Field(i).Name)
		}
	}
}

func checkpointFile(version int) string { return fmt.Sprintf("testdata/checkpoint-v%d.json", version) }

func checkpointBytes(tb testing.TB, version int) []byte {
	tb.Helper()
	return []byte(files.Read(tb, checkpointFile(version)))
}

// The pages say which versions there are, and what each one added.
func TestVersionsOfTheCheckpointAreDocumented(t *testing.T) {
	golden.Contains(t, files.Read(t, "../docs/upgrading.md"),
		fmt.Sprintf("| checkpoint, and the note in a CDI spec | %d to %d, the oldest that can record what claims hold | %d to %d |", checkpointV3, checkpointVersion, checkpointV1, checkpointVersion),
		fmt.Sprintf("`damaged checkpoint: version %d, newest known is %d; install the newer dra-numa that wrote it", checkpointVersion+1, checkpointVersion))
	changes := files.Read(t, "../CHANGELOG.md")
	for version := checkpointV1; version <= checkpointVersion; version++ {
		golden.Contains(t, changes, fmt.Sprintf("\n| %d | ", version))
	}
}

func TestOpenUpgradesVersion1(t *testing.T) {
	disk := newDisk(t)
	disk.write(CheckpointName, string(checkpointBytes(t, checkpointV1)))
	disk.write(specName("uid-a"), "{}") // as written with version 1, without a note
	sub := consuming(result("main/sub", "numa-1", 2), "memory=1Gi")
	memory := consuming(result("memory", "numa-2", 0), "hugepages2Mi=4Mi", "hugepages1Gi=1Gi")
	sub.ShareID, memory.ShareID = nil, nil
	driver, report := disk.recover(map[types.UID]*resourceapi.ResourceClaim{"uid-a": claim("a", sub, memory)})
	want := sampleV3() // nothing is known of claim b except its CPUs
	want.Grants[0].Order, want.Grants[1].Order = 1, 2
	of := want.Grants[0].Shares[0].Zone() // the reason is lost; there was only one way to use CPUs
	of.IdleCPUs, of.Why, of.Partition, of.Scope, of.Mixed, of.SharedCPUs, of.MemoryPolicy = cpuset.Set{}, "", "root", "", false, cpuset.Set{}, ""
	if got := (Checkpoint{Version: checkpointV3, BootID: "boot-1", Grants: driver.grants.grants()}); !reflect.DeepEqual(got, want) {
		t.Errorf("grants %+v, want %+v", got, want)
	}
	if len(report) != 2 || report[0].Outcome != Kept || report[1].Outcome != Kept {
		t.Errorf("report %v, want two kept", report)
	}
	assertConsistent(t, disk, driver)

	b := consuming(result("r", "numa-0", 2), "memory=1Mi")
	b.ShareID = ptr.To(types.UID("s"))
	mustPrepare(t, driver, claim("b", b))
	want.Grants[1].Shares[0].Zone().MemoryBytes, want.Grants[1].Shares[0].Zone().Partition = 1<<20, "root"
	if got := grantOf(driver, "uid-b"); !got.equal(want.Grants[1]) {
		t.Errorf("prepared again, claim b has %+v, want %+v", got, want.Grants[1])
	}
	assertConsistent(t, disk, driver)
}

func TestCheckpointPrefixIsDamaged(t *testing.T) {
	for version := checkpointV1; version <= checkpointVersion; version++ {
		data := checkpointBytes(t, version)
		for n := range data {
			if got, err := DecodeCheckpoint(data[:n]); !errors.Is(err, ErrDamaged) {
				t.Errorf("first %d bytes of version %d decode to %+v, %v", n, version, got, err)
			}
		}
		for _, garbage := range []string{"\n", " ", "\x00", "{}", string(data)} {
			if got, err := DecodeCheckpoint(append(bytes.Clone(data), garbage...)); !errors.Is(err, ErrDamaged) {
				t.Errorf("version %d with %q behind decodes to %+v, %v", version, garbage, got, err)
			}
		}
	}
}

func TestCheckpointFlippedByteIsDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	data := encodeCheckpoint(sampleCheckpoint())
	for i := range data {
		for flip := 1; flip < 256; flip++ {
			torn := bytes.Clone(data)
			torn[i] ^= byte(flip)
			if _, err := DecodeCheckpoint(torn); err == nil {
				t.Fatalf("byte %d %q changed to %q goes unnoticed", i, data[i], torn[i])
			}
		}
	}
}

func FuzzDecodeCheckpoint(f *testing.F) {
	for version := checkpointV1; version <= checkpointVersion; version++ {
		f.Add(checkpointBytes(f, version))
	}
	f.Add(encodeCheckpoint(Checkpoint{Version: checkpointVersion}))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Once more with a correct checksum, so that the rest is checked too.
		for _, data := range [][]byte{data, resealed(data)} {
			decoded, err := DecodeCheckpoint(data)
			if err != nil {
				if !errors.Is(err, ErrDamaged) || !reflect.DeepEqual(decoded, Checkpoint{}) {
					t.Errorf("%q: %+v, %v", data, decoded, err)
				}
				continue
			}
			if again := encodeCheckpoint(decoded); decoded.Version == checkpointVersion && !bytes.Equal(again, data) {
				t.Errorf("encode(decode(%q)) = %q", data, again)
			}
			decoded.Version = checkpointVersion
			if again, err := DecodeCheckpoint(encodeCheckpoint(decoded)); err != nil || !reflect.DeepEqual(again, decoded) {
				t.Errorf("decode(encode(%+v)) = %+v, %v", decoded, again, err)
			}
		}
	})
}

// resealed returns the file with the correct checksum of its state.
func resealed(data []byte) []byte {
	var file envelope
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	return fmt.Appendf(nil, "{\"version\":%d,\"sha256\":%q,\"state\":%s}\n", file.Version, checksum(file.State), file.State)
}

func TestCheckpointThatNobodyWroteIsDamaged(t *testing.T) {
	for name, row := range map[string]struct {
		old, new, want string
	}{
		"unknown field":      {`"zone":0`, `"zone":0,"devices":[]`, "not as dra-numa writes it"},
		"other order":        {`"uid":"uid-a"`, `"uid":"uid-c"`, "claim uid-b after claim uid-c"},
		"other case":         {`"zone":0`, `"Zone":0`, "not as dra-numa writes it"},
		"spaces":             {`"zone":0`, `"zone": 0`, "not as dra-numa writes it"},
		"no order":           {`"order":1,`, ``, "claim uid-b has no order"},
		"one CPU twice":      {`"zone":2,"cpus":""`, `"zone":2,"cpus":"5"`, "cpus 5 are in two shares, one of claim default/a"},
		"new field in old":   {`"version":7`, `"version":1`, "version 1 has a field of version 3 in claim uid-a"},
		"newer field in old": {`"version":7`, `"version":2`, "version 2 has a field of version 3 in claim uid-a"},
		"zones in old":       {`"version":7`, `"version":3`, "version 3 has a field of version 4 in claim uid-b"},
		"one of zones":       {`"zones":[2,3]`, `"zones":[2]`, "zones: [2], want several zones that start with zone 2"},
		"zones of another":   {`"zones":[2,3]`, `"zones":[1,2]`, "zones: [1 2], want several zones that start with zone 2"},
		"zones backwards":    {`"zones":[2,3]`, `"zones":[2,2]`, "zones: [2 2], allowed are ids in ascending order, of 0 to 8191"},
		"zone out of bounds": {`"zone":0`, `"zone":-1`, "zones: [-1], allowed are ids in ascending order, of 0 to 8191"},
		"zones of none":      {`"zones":[2,3]`, `"zones":[]`, "not as dra-numa writes it"},
		"one function twice": {`"0000:17:00.0"`, `"0000:3b:00.0"`, "PCI function 0000:3b:00.0 is in two shares, one of claim default/c"},
		"physical and not":   {`"0000:17:00.0"`, `"0000:5e:00.0"`, "PCI function 0000:5e:00.0 is in two shares, one of claim default/c"},
		"no address":         {`"0000:17:00.0"`, `"17:00.0"`, `function.address: "17:00.0", want one such as 0000:3b:00.0`},
		"no physical one":    {`"0000:5e:00.0"`, `"eno1"`, `function.physicalFunction: "eno1", want one such as 0000:3b:00.0`},
		"node elsewhere":     {`"/dev/nvme0"`, `"/dev/../etc"`, `function.nodes: device node path "/dev/../etc": want one below /dev/`},
		"node of no kind":    {`"type":"c"`, `"type":"p"`, `device node type "p": allowed are b, c`},
		"no CDI device":      {`gpu=GPU-1111`, `gpu`, `CDI device "nvidia.com/gpu": want vendor/class=name`},
		"function with CPUs": {`"device":"gpu-0000-17-00-0","zone":0,"cpus":""`, `"device":"gpu-0000-17-00-0","zone":0,"cpus":"7"`, "function: the share of 0000:17:00.0 also has CPUs, memory or a cache"},
		"cache in old":       {`"version":7`, `"version":4`, "version 4 has a field of version 5 in claim uid-d"},
		"cache with CPUs":    {`"device":"cache-0-shared","zone":0,"cpus":""`, `"device":"cache-0-shared","zone":0,"cpus":"7"`, "cache: the share of cache 0 also has CPUs or memory"},
		"uncore in old":      {`"version":7`, `"version":6`, "version 6 has a field of version 7 in claim uid-f"},
		"bad uncore":         {`"firstKHz":800000`, `"firstKHz":-1`, "uncore[0]: 2000000 kHz of die 1 of package 0, and -1 kHz first"},
		"bad demand":         {`"wantKHz":2000000,"gotKHz":1900000}],"applied"`, `"wantKHz":0,"gotKHz":1900000}],"applied"`, "performance.uncore: 0 kHz of die 0 of package 1"},
		"bad default":        {`{"asked":{"maxFrequency":"base"`, `{"asked":{"maxFrequency":"fast"`, `defaults[0].maxFrequency: "fast", want a frequency`},
		"interrupts in old":  {`"version":7`, `"version":5`, "version 5 has a field of version 6 in claim uid-e"},
		"bad performance":    {`"governor":"performance"`, `"governor":"../x"`, `performance.governor: "../x", want the name of a governor`},
		"crossed range":      {`"minKHz":800000`, `"minKHz":3700001`, "performance.frequencies: 3700001 to 3700000 kHz of policies 14-15"},
		"no such pool":       {`"pool":"shared"`, `"pool":"os"`, `cache.pool: "os" of cache 0, allowed are guaranteed, besteffort and shared of a cache from 0`},
		"ways of all":        {`"group":1,"cpus":"main/sub"`, `"group":1,"cpus":"main/sub","ways":2`, "cache.ways: 2 in the pool shared"},
		"ways of none":       {`"cpus":"cpus","ways":2`, `"cpus":"cpus"`, "cache.ways: 0 in the pool besteffort"},
		"too many ways":      {`"maxWays":5`, `"maxWays":65`, "cache.maxWays: 65, allowed are 0 to 64"},
		"one class twice":    {`"l3":0,"pool":"shared","group":1`, `"l3":3,"pool":"shared","group":2`, "class dra-numa.2 of cache 3 is in two shares, one of claim default/d"},
		"others' idle CPUs":  {`"idleCPUs":"5"`, `"idleCPUs":"6"`, "idleCPUs: 6, allowed are some of cpus 4-5"},
		"all CPUs idle":      {`"idleCPUs":"5"`, `"idleCPUs":"4-5"`, "idleCPUs: 4-5, allowed are some of cpus 4-5"},
		"no idle CPUs":       {`"idleCPUs":"5"`, `"idleCPUs":""`, "not as dra-numa writes it"},
		"version 0":          {`"version":7`, `"version":0`, "not as dra-numa writes it"},
		"no hugepages":       {`"1Gi":1073741824`, `"1Gi":-1`, "cannot unmarshal"},
		"CPU out of bounds":  {`"4-5"`, `"4-8192"`, "above 8191"},
		"unknown partition":  {`"partition":"isolated"`, `"partition":"member"`, `partition: "member", allowed are root, isolated, none`},
		"unknown scope":      {`"scope":"pod"`, `"scope":"container"`, `scope: "container", allowed are pod, shared`},
		"unknown policy":     {`"memoryPolicy":"bind"`, `"memoryPolicy":"Bind"`, `memoryPolicy: "Bind", allowed are bind, preferred`},
		"mixed of null":      {`"mixed":true`, `"mixed":null`, "not as dra-numa writes it"},
		"not a CPU list":     {`"4-5"`, `"5-4"`, "runs backwards"},
		"not shortest":       {`"4-5"`, `"4,5"`, "not as dra-numa writes it"},
		"empty field":        {`"zone":0`, `"zone":0,"memoryBytes":0`, "not as dra-numa writes it"},
		"checkpoint of null": {`"grants":[`, `"grants":null,"x":[`, "unknown field"},
	} {
		data := encodeCheckpoint(sampleCheckpoint())
		changed := resealed(bytes.Replace(data, []byte(row.old), []byte(row.new), 1))
		got, err := DecodeCheckpoint(changed)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %+v, %v, want ErrDamaged with %q", name, got, err, row.want)
		}
	}
}

func TestOpenRefusesUnusableCheckpoint(t *testing.T) {
	newer := bytes.Replace(encodeCheckpoint(sampleCheckpoint()), []byte(`"version":7`), []byte(`"version":8`), 1)
	for name, row := range map[string]struct {
		data []byte
		want string
	}{
		"newer":   {newer, "version 8, newest known is 7; install the newer dra-numa"},
		"empty":   {nil, "drain the node, delete the file"},
		"corrupt": {bytes.Replace(encodeCheckpoint(sampleCheckpoint()), []byte("4-5"), []byte("4-6"), 1), "checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk(t)
			path := filepath.Join(disk.state.Name(), CheckpointName)
			disk.write(CheckpointName, string(row.data))
			_, err := disk.tryOpen(testConfig())
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want ErrDamaged with %q and the path", err, row.want)
			}
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("error %q is not one line", err)
			}
			if now := files.Read(t, path); now != string(row.data) {
				t.Errorf("the damaged file was touched: %q", now)
			}
		})
	}
}
