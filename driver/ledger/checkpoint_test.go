package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func sampleCheckpoint() Checkpoint {
	latency := 0
	return Checkpoint{Version: checkpointVersion, BootID: "boot-1", Grants: []Grant{
		{UID: "uid-a", Namespace: "default", Name: "a", Order: 2, Pods: []types.UID{"uid-p", "uid-q"}, QuotaPods: []cdi.QuotaPod{{UID: "uid-p"}, {UID: "uid-q", MilliCPU: 2500}}, Shares: []Share{
			{Request: "main/sub", Device: "numa-1", Kind: &ZoneShare{NUMANodes: []int{1}, CPUs: cpuset.New(4, 5), Why: "for a reason", MemoryBytes: 1 << 30, IdleCPUs: cpuset.New(5), Partition: "isolated", Scope: ScopePod, Mixed: true, SharedCPUs: cpuset.New(0, 1, 6), MemoryPolicy: "bind"}},
			{Request: "memory", Device: "numa-2", Kind: &ZoneShare{NUMANodes: []int{2}, HugepageBytes: map[string]uint64{"2Mi": 4 << 20, "1Gi": 1 << 30}}},
		}},
		{UID: "uid-b", Namespace: "default", Name: "b", Order: 1, Shares: []Share{
			{Request: "r", Device: "numa-0", ShareID: "s", Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(2, 3), Partition: "root"}},
			{Request: "s", Device: "socket-1", Kind: &ZoneShare{NUMANodes: []int{2, 3}, CPUs: cpuset.New(8), Partition: "root"}},
		}},
		{UID: "uid-c", Namespace: "default", Name: "c", Order: 3, Shares: []Share{
			{Request: "drive", Device: "nvme-0000-3b-00-0", Kind: &FunctionShare{Address: "0000:3b:00.0", Kind: deviceclasses.KindNVMe, Nodes: []devnode.Node{
				{Path: "/dev/nvme0", Type: "c", Major: 240, Minor: 0}, {Path: "/dev/nvme0n1", Type: "b", Major: 259, Minor: 3},
			}, Former: []devnode.Node{{Path: "/dev/nvme4", Type: "c", Major: 240, Minor: 4}}}},
			{Request: "card", Device: "nic-0000-5e-00-2", Kind: &FunctionShare{Address: "0000:5e:00.2", Kind: deviceclasses.KindNIC, PhysFn: "0000:5e:00.0", Interfaces: []string{"ens1v0"}, Lost: true}},
			{Request: "bound", Device: "nvme-0000-3d-00-0", Kind: &FunctionShare{Address: "0000:3d:00.0", Kind: deviceclasses.KindNVMe, Driver: "vfio-pci", Before: binding.State{Driver: "nvme", Override: "nvme"}}},
			{Request: "gpu", Device: "gpu-0000-17-00-0", Kind: &FunctionShare{Address: "0000:17:00.0", Kind: deviceclasses.KindGPU, CDIDevice: "nvidia.com/gpu=GPU-1111"}},
		}},
		{UID: "uid-d", Namespace: "default", Name: "d", Order: 4, Shares: []Share{
			{Request: "cpus", Device: "numa-3", Kind: &ZoneShare{NUMANodes: []int{3}, CPUs: cpuset.New(12, 13), Partition: "root"}},
			{Request: "ways", Device: "cache-3-besteffort", ShareID: "w", Kind: &CacheShare{L3: 3, Pool: "besteffort", Group: 2, CPUs: "cpus", Ways: 2, MaxWays: 5, BandwidthPercent: 40, Asked: deviceclasses.CacheAmounts{BandwidthPercent: 35}}},
			{Request: "more", Device: "cache-0-shared", Kind: &CacheShare{Pool: "shared", Group: 1, CPUs: "main/sub"}},
		}},
		{UID: "uid-e", Namespace: "default", Name: "e", Order: 5, Shares: []Share{
			{Request: "fast", Device: "numa-3", Kind: &ZoneShare{NUMANodes: []int{3}, CPUs: cpuset.New(14, 15), Partition: "root", Performance: &Performance{
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
			{Request: "planned", Device: "numa-3", Kind: &ZoneShare{NUMANodes: []int{3}, CPUs: cpuset.New(16), Partition: "root", Performance: &Performance{Asked: deviceclasses.PerformanceSettings{Interrupts: "own"}}}},
		}},
		{UID: "uid-f", Namespace: "default", Name: "f", Order: 6, Shares: []Share{
			{Request: "mesh", Device: "numa-3", Kind: &ZoneShare{NUMANodes: []int{3}, CPUs: cpuset.New(17), Partition: "root", Performance: &Performance{
				Asked: deviceclasses.PerformanceSettings{MinUncoreFrequency: "2GHz"}, Applied: true,
				Uncore: []uncore.Demand{{ID: uncore.ID{Package: 1, Die: 0}, WantKHz: 2_000_000, GotKHz: 1_900_000}},
			}}},
		}},
	}}
}

// The file has exactly this text. If it changes, files of builds from before are "written by
// another build": make upgrade-test has to begin at the build that changed it (FROM in the
// Makefile).
func TestCheckpointRoundTrips(t *testing.T) {
	files.Golden(t, checkpointFile, string(sampleCheckpoint().Encode()))
	read, err := DecodeCheckpoint(checkpointBytes(t))
	if want := sampleCheckpoint(); err != nil || !reflect.DeepEqual(read, want) {
		t.Errorf("read as %+v, %v, want %+v", read, err, want)
	}
}

// The files of builds before the first release had no format, and the versions 1 to 7.
func TestCheckpointOfAnotherBuildIsNotDamaged(t *testing.T) {
	state := `{"bootID":"boot-1","grants":[{"uid":"u","namespace":"n","name":"a","order":1,"shares":[{"request":"r","device":"numa-0","zone":0,"cpus":"2-3"}]}]}`
	ours := string(sampleCheckpoint().Encode())
	for name, row := range map[string]struct{ text, want string }{
		"before the first release": {fmt.Sprintf(`{"version":7,"sha256":%q,"state":%s}`+"\n", checksum([]byte(state)), state), `format "", version 7`},
		"the same numbers":         {fmt.Sprintf(`{"version":1,"sha256":%q,"state":%s}`+"\n", checksum([]byte(state)), state), `format "", version 1`},
		"the next release":         {strings.Replace(ours, `"version":1`, `"version":2`, 1), `version 2, this build reads format "dra.numa/checkpoint", version 1`},
		"another format":           {strings.Replace(ours, checkpointFormat, "dra.numa/other", 1), `format "dra.numa/other"`},
		"the former share":         {string(resealed([]byte(ours), func(string) string { return state })), `shares.zone of type ledger.ZoneShare`},
		"first values":             {string(resealed([]byte(ours), func(s string) string { return strings.TrimSuffix(s, "}") + `,"interrupts":{"default":"0-3"}}` })), `unknown field "interrupts"`},
		"a field of the next":      {string(resealed([]byte(ours), func(s string) string { return strings.TrimSuffix(s, "}") + `,"nextRelease":"next"}` })), `nextRelease: "next" in version 1`},
	} {
		got, err := DecodeCheckpoint([]byte(row.text))
		if !errors.Is(err, ErrOtherBuild) || errors.Is(err, ErrDamaged) || !GrantsUnknown(err) || !reflect.DeepEqual(got, Checkpoint{}) {
			t.Errorf("%s: %+v, %v, want ErrOtherBuild", name, got, err)
		}
		for _, part := range []string{"written by another build: ", row.want, "; install the build that wrote it, or drain the node, delete checkpoint.json and the CDI specs dra.numa-claim_*.json, and restart the daemon"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q in it", name, err, part)
			}
		}
	}
}

// The made-up next release reads what this build writes, and writes what this build refuses.
func TestNextReleaseHasItsOwnVersion(t *testing.T) {
	old := sampleCheckpoint().Encode()
	nextRelease = "next"
	t.Cleanup(func() { nextRelease = "" })
	if read, err := DecodeCheckpoint(old); err != nil || read.Version != 1 {
		t.Errorf("the next release reads version %d, %v, want 1", read.Version, err)
	}
	text := NewCheckpoint("boot-1").Encode()
	if read, err := DecodeCheckpoint(text); err != nil || read.Version != 2 || read.NextRelease != "next" {
		t.Errorf("it reads its own as %+v, %v", read, err)
	}
	// The linker ignores the name of a variable that does not exist.
	files.Contains(t, files.Read(t, "../../Makefile"), "-X github.com/dra-driver-numa/dra-driver-numa/driver/ledger.nextRelease="+nextRelease+"\n")
	nextRelease = ""
	if _, err := DecodeCheckpoint(text); !errors.Is(err, ErrOtherBuild) {
		t.Errorf("this build says %v of the next release, want ErrOtherBuild", err)
	}
}

// Nothing that the newer release wrote keeps the older one from a drained node: docs/upgrading.md
// has both ways.
func TestRollbackThatWasRefusedEnds(t *testing.T) {
	for name, drainedBefore := range map[string]bool{"drained by the newer release": true, "refused first": false} {
		t.Run(name, func(t *testing.T) {
			state, folder := files.OpenTemp(t), files.OpenTemp(t)
			specs := cdi.NewStore(folder)
			nextRelease = "next"
			t.Cleanup(func() { nextRelease = "" })
			saved := NewCheckpoint("boot-1")
			if !drainedBefore {
				saved.Grants = sampleCheckpoint().Grants
				for _, grant := range saved.Grants {
					note := EncodeNote("boot-1", NewListed(grant))
					text, err := json.Marshal(map[string]any{"annotations": map[string]string{"dra.numa/grant": note}})
					if err := errors.Join(err, specs.Write(string(grant.UID), text)); err != nil {
						t.Fatal(err)
					}
				}
			}
			files.Write(t, filepath.Join(state.Name(), CheckpointName), string(saved.Encode()))
			nextRelease = ""
			refused := func() {
				t.Helper()
				if _, err := Load(state, specs, "boot-1"); !errors.Is(err, ErrOtherBuild) {
					t.Fatalf("error %v, want ErrOtherBuild", err)
				}
			}
			refused()
			if err := state.Remove(CheckpointName); err != nil {
				t.Fatal(err)
			}
			if !drainedBefore {
				refused()
				notes, err := filepath.Glob(filepath.Join(folder.Name(), cdi.ClaimSpecs))
				for _, note := range notes {
					err = errors.Join(err, os.Remove(note))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if loaded, err := Load(state, specs, "boot-1"); err != nil || len(loaded.Entries) > 0 || !loaded.Lost {
				t.Errorf("loaded %+v, %v, want a first start", loaded, err)
			}
		})
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
	for _, c := range []Checkpoint{full, withCache, sampleCheckpoint(), strange, {Version: 1, Grants: []Grant{}}, {Grants: []Grant{{}, {Shares: []Share{}}}}} {
		state, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(envelope{Format: checkpointFormat, Version: c.Version, SHA256: checksum(state), State: state})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Encode(); string(got) != string(want)+"\n" {
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
		if any(&less).(Kind).Equal(any(full).(Kind)) {
			t.Errorf("%Ts with and without %s are equal", full, reflect.TypeFor[T]().Field(i).Name)
		}
	}
}

const checkpointFile = "testdata/checkpoint.json"

func checkpointBytes(tb testing.TB) []byte {
	tb.Helper()
	return []byte(files.Read(tb, checkpointFile))
}

func TestCheckpointPrefixIsDamaged(t *testing.T) {
	data := checkpointBytes(t)
	for n := range data {
		if got, err := DecodeCheckpoint(data[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("first %d bytes decode to %+v, %v", n, got, err)
		}
	}
	for _, garbage := range []string{"\n", " ", "\x00", "{}", string(data)} {
		if got, err := DecodeCheckpoint(append(bytes.Clone(data), garbage...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("with %q behind, it decodes to %+v, %v", garbage, got, err)
		}
	}
}

func TestCheckpointFlippedByteIsDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	data := sampleCheckpoint().Encode()
	for i := range data {
		for flip := 1; flip < 256; flip++ {
			torn := bytes.Clone(data)
			torn[i] ^= byte(flip)
			if _, err := DecodeCheckpoint(torn); !GrantsUnknown(err) {
				t.Fatalf("byte %d %q changed to %q goes unnoticed", i, data[i], torn[i])
			}
		}
	}
}

func FuzzDecodeCheckpoint(f *testing.F) {
	f.Add(checkpointBytes(f))
	f.Add(Checkpoint{Version: checkpointVersion}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		// Once more with a correct checksum, so that the rest is checked too.
		for _, data := range [][]byte{data, resealed(data, nil)} {
			decoded, err := DecodeCheckpoint(data)
			if err != nil {
				if !GrantsUnknown(err) || !reflect.DeepEqual(decoded, Checkpoint{}) {
					t.Errorf("%q: %+v, %v", data, decoded, err)
				}
				continue
			}
			if again := decoded.Encode(); !bytes.Equal(again, data) {
				t.Errorf("encode(decode(%q)) = %q", data, again)
			}
		}
	})
}

// resealed returns the file with a changed state, and the correct checksum of it.
func resealed(data []byte, change func(state string) string) []byte {
	var file envelope
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	if change != nil {
		file.State = []byte(change(string(file.State)))
	}
	return append(append(appendHeader(nil, file.Format, file.Version, checksum(file.State)), file.State...), "}\n"...)
}

// A state with a correct checksum is what a build of the driver has written: what this build
// does not accept is of another one.
func TestStateThatThisBuildWouldNotWriteIsOfAnotherBuild(t *testing.T) {
	for name, row := range map[string]struct {
		old, new, want string
	}{
		"unknown field":      {`"numaNodes":[1]`, `"numaNodes":[1],"devices":[]`, `unknown field "devices"`},
		"other order":        {`"uid":"uid-a"`, `"uid":"uid-c"`, "claim uid-b after claim uid-c"},
		"other case":         {`"numaNodes":[1]`, `"NumaNodes":[1]`, "not in the form that this build writes"},
		"spaces":             {`"zone":`, `"zone": `, "not in the form that this build writes"},
		"no order":           {`"order":1,`, `"order":0,`, "claim uid-b has no order"},
		"one CPU twice":      {`"numaNodes":[2],`, `"numaNodes":[2],"cpus":"5",`, "cpus 5 are in two shares, one of claim default/a"},
		"nodes backwards":    {`"numaNodes":[2,3]`, `"numaNodes":[2,2]`, "numaNodes: [2 2], allowed are ids in ascending order, of 0 to 8191"},
		"node out of bounds": {`"numaNodes":[1]`, `"numaNodes":[-1]`, "numaNodes: [-1], allowed are ids in ascending order, of 0 to 8191"},
		"no node":            {`"numaNodes":[2,3]`, `"numaNodes":[]`, "numaNodes: want at least one id"},
		"nodes of null":      {`"numaNodes":[2,3]`, `"numaNodes":null`, "numaNodes: want at least one id"},
		"CPUs of no use":     {`"cpus":"8","partition":"root"`, `"cpus":"8"`, `partition: "" with cpus "8", want a partition for CPUs`},
		"nothing":            {`,"zone":{"numaNodes":[2,3],"cpus":"8","partition":"root"}`, ``, "the share of device socket-1 has 0 of zone, function and cache, want one"},
		"nobody's CPUs":      {`"cache":{"l3":3`, `"performance":{"asked":{}},"cache":{"l3":3`, "performance: the share of device cache-3-besteffort has no zone"},
		"one function twice": {`"0000:17:00.0"`, `"0000:3b:00.0"`, "PCI function 0000:3b:00.0 is in two shares, one of claim default/c"},
		"physical and not":   {`"0000:17:00.0"`, `"0000:5e:00.0"`, "PCI function 0000:5e:00.0 is in two shares, one of claim default/c"},
		"no address":         {`"0000:17:00.0"`, `"17:00.0"`, `function.address: "17:00.0", want one such as 0000:3b:00.0`},
		"no physical one":    {`"0000:5e:00.0"`, `"eno1"`, `function.physicalFunction: "eno1", want one such as 0000:3b:00.0`},
		"node elsewhere":     {`"/dev/nvme0"`, `"/dev/../etc"`, `function.nodes: device node path "/dev/../etc": want one below /dev/`},
		"node of no kind":    {`"type":"c"`, `"type":"p"`, `device node type "p": allowed are b, c`},
		"no CDI device":      {`gpu=GPU-1111`, `gpu`, `CDI device "nvidia.com/gpu": want vendor/class=name`},
		"function with CPUs": {`"device":"gpu-0000-17-00-0",`, `"device":"gpu-0000-17-00-0","zone":{"numaNodes":[0]},`, "the share of device gpu-0000-17-00-0 has 2 of zone, function and cache, want one"},
		"cache with CPUs":    {`"device":"cache-0-shared",`, `"device":"cache-0-shared","zone":{"numaNodes":[0]},`, "the share of device cache-0-shared has 2 of zone, function and cache, want one"},
		"bad demand":         {`"wantKHz":2000000,"gotKHz":1900000}],"applied"`, `"wantKHz":0,"gotKHz":1900000}],"applied"`, "performance.uncore: 0 kHz of die 0 of package 1"},
		"bad performance":    {`"governor":"performance"`, `"governor":"../x"`, `performance.governor: "../x", want the name of a governor`},
		"crossed range":      {`"minKHz":800000`, `"minKHz":3700001`, "performance.frequencies: 3700001 to 3700000 kHz of policies 14-15"},
		"no such pool":       {`"pool":"shared"`, `"pool":"os"`, `cache.pool: "os" of cache 0, allowed are guaranteed, besteffort and shared of a cache from 0`},
		"ways of all":        {`"group":1,"cpus":"main/sub"`, `"group":1,"cpus":"main/sub","ways":2`, "cache.ways: 2 in the pool shared"},
		"ways of none":       {`"cpus":"cpus","ways":2`, `"cpus":"cpus"`, "cache.ways: 0 in the pool besteffort"},
		"too many ways":      {`"maxWays":5`, `"maxWays":65`, "cache.maxWays: 65, allowed are 0 to 64"},
		"one class twice":    {`"l3":0,"pool":"shared","group":1`, `"l3":3,"pool":"shared","group":2`, "class dra-numa.2 of cache 3 is in two shares, one of claim default/d"},
		"others' idle CPUs":  {`"idleCPUs":"5"`, `"idleCPUs":"6"`, "idleCPUs: 6, allowed are some of cpus 4-5"},
		"all CPUs idle":      {`"idleCPUs":"5"`, `"idleCPUs":"4-5"`, "idleCPUs: 4-5, allowed are some of cpus 4-5"},
		"no idle CPUs":       {`"idleCPUs":"5"`, `"idleCPUs":""`, "not in the form that this build writes"},
		"no hugepages":       {`"1Gi":1073741824`, `"1Gi":-1`, "cannot unmarshal"},
		"CPU out of bounds":  {`"4-5"`, `"4-8192"`, "above 8191"},
		"unknown partition":  {`"partition":"isolated"`, `"partition":"member"`, `partition: "member", allowed are root, isolated, none`},
		"unknown scope":      {`"scope":"pod"`, `"scope":"container"`, `scope: "container", allowed are pod, shared`},
		"unknown policy":     {`"memoryPolicy":"bind"`, `"memoryPolicy":"Bind"`, `memoryPolicy: "Bind", allowed are bind, preferred`},
		"mixed of null":      {`"mixed":true`, `"mixed":null`, "not in the form that this build writes"},
		"not a CPU list":     {`"4-5"`, `"5-4"`, "runs backwards"},
		"not shortest":       {`"4-5"`, `"4,5"`, "not in the form that this build writes"},
		"empty field":        {`"numaNodes":[1]`, `"numaNodes":[1],"memoryBytes":0`, "not in the form that this build writes"},
		"checkpoint of null": {`"grants":[`, `"grants":null,"x":[`, "unknown field"},
	} {
		data := sampleCheckpoint().Encode()
		changed := resealed(data, func(state string) string { return strings.Replace(state, row.old, row.new, 1) })
		got, err := DecodeCheckpoint(changed)
		if !errors.Is(err, ErrOtherBuild) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %+v, %v, want ErrOtherBuild with %q", name, got, err, row.want)
		}
	}
}

func TestNoteIsRead(t *testing.T) {
	for _, want := range sampleCheckpoint().Grants {
		got, current, err := decodeNote(cdi.Note{ClaimUID: string(want.UID), Text: EncodeNote("boot-1", NewListed(want))}, "boot-1")
		if err != nil || !current || !got.Equal(want) {
			t.Errorf("claim %s is read as %+v, %t, %v, want %+v", want.UID, got, current, err, want)
		}
	}
}
