package cdi

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const uid = "0f2ba7c1-2f63-4b79-8d5c-6c4f6a3f1a10"

var hook = Hook{Path: "/var/lib/kubelet/plugins/dra.numa-hook/numa-pin", Dir: "/var/lib/kubelet/plugins/dra.numa"}

// fullClaim has each kind of share: CPUs of a subrequest, of the whole pod and
// not, mixed ones, memory only.
func fullClaim() Claim {
	return Claim{UID: uid, Namespace: "default", Name: "pod-1.claim", Note: `{"any":"text"}`, Pods: []types.UID{"5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e01", "c1b7e01a-26d5-4a41-9a3f-4f5d8c1b7e02"}, Shares: []Share{
		{Request: "fast-cpus/large", Device: "numa-0", Kind: &Zone{CPUs: cpuset.New(4, 5, 6, 7), IdleCPUs: cpuset.New(5, 7), Mems: cpuset.New(0), Partition: PartitionIsolated, Scope: ScopePod}},
		{Request: "fast-cpus/large", Device: "numa-1", Kind: &Zone{CPUs: cpuset.New(8, 9), Mems: cpuset.New(1), Partition: PartitionRoot, Scope: ScopeContainer}},
		{Request: "io", Device: "numa-1", Kind: &Zone{CPUs: cpuset.New(10), Mems: cpuset.New(1), Partition: PartitionNone, Scope: ScopeContainer, Mixed: true, SharedCPUs: cpuset.New(0, 1, 11)}},
		{Request: "io", Device: "numa-3", Kind: &Zone{CPUs: cpuset.New(12, 13), IdleCPUs: cpuset.New(13), Mems: cpuset.New(3), Partition: PartitionNone, Scope: ScopeContainer}},
		{Request: "memory", Device: "numa-2", Kind: &Zone{Mems: cpuset.New(2), MemoryPolicy: "bind:2", Partition: PartitionNone, Scope: ScopeContainer}},
	}}
}

// pciClaim has PCI functions only: with device nodes and without, two of one request.
func pciClaim() Claim {
	return Claim{UID: uid, Namespace: "default", Name: "pci", Shares: []Share{
		{Request: "drive", Device: "nvme-0000-3b-00-0", Kind: &Function{PCI: "0000:3b:00.0", Nodes: []devnode.Node{
			{Path: "/dev/nvme0", Type: "c", Major: 240, Minor: 0}, {Path: "/dev/nvme0n1", Type: "b", Major: 259, Minor: 3},
		}}},
		{Request: "cards", Device: "nic-0000-5e-00-0", Kind: &Function{PCI: "0000:5e:00.0", Interfaces: []string{"ens1", "ens1d1"}}},
		{Request: "cards", Device: "nic-0000-5e-00-1", Kind: &Function{PCI: "0000:5e:00.1", Interfaces: []string{"ens2"}}},
	}}
}

// joinedClaim has ways that its mixed containers join, and others that they do not.
func joinedClaim() Claim {
	return Claim{UID: uid, Namespace: "default", Name: "joined", Shares: []Share{
		{Request: "cpus", Device: "numa-0", Kind: &Zone{CPUs: cpuset.New(4, 5), Partition: PartitionNone, Scope: ScopeContainer, Mixed: true, SharedCPUs: cpuset.New(0, 1)}},
		{Request: "cache", Device: "cache-0-guaranteed", Kind: &Cache{L3: 0, Group: "dra-numa.3"}},
		{Request: "more", Device: "numa-1", Kind: &Zone{CPUs: cpuset.New(8, 9), Partition: PartitionRoot, Scope: ScopeContainer}},
		{Request: "more-cache", Device: "cache-1-shared", Kind: &Cache{L3: 1}},
	}}
}

func names(t *testing.T, dir *os.Root) []string {
	t.Helper()
	entries, err := os.ReadDir(dir.Name())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func write(store Store, claim Claim) error {
	text, err := Encode(claim, hook)
	if err != nil {
		return err
	}
	return store.Ensure(claim.UID, text)
}

func TestSpecGolden(t *testing.T) {
	single := fullClaim()
	single.Shares, single.Note = single.Shares[1:2], ""
	for name, claim := range map[string]Claim{"full": fullClaim(), "single": single, "pci": pciClaim(), "joined": joinedClaim()} {
		dir := files.OpenTemp(t)
		if err := write(NewStore(dir), claim); err != nil {
			t.Fatal(err)
		}
		text, err := dir.ReadFile(fileName(uid))
		if err != nil {
			t.Fatal(err)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		files.Golden(t, "testdata/"+name+".json", indented.String())
	}
}

func TestHookIsToldWhoseQuotasItLifts(t *testing.T) {
	lifting := hook
	lifting.LiftQuota = true
	for _, row := range []struct {
		name string
		hook Hook
		pods []QuotaPod
		zone Zone
		want string
	}{
		{"container", lifting, []QuotaPod{{"p1", 2500}, {"p2", 0}}, Zone{CPUs: cpuset.New(2, 3), Partition: PartitionRoot, Scope: ScopeContainer}, "--lift-quota=p1=2500,p2=0"},
		{"no partition", lifting, []QuotaPod{{"p1", 2000}}, Zone{CPUs: cpuset.New(2, 3), Partition: PartitionNone, Scope: ScopeContainer}, "--lift-quota=p1=2000"},
		{"pods with limits", lifting, nil, Zone{CPUs: cpuset.New(2, 3), Partition: PartitionRoot, Scope: ScopeContainer}, ""},
		{"keep", hook, []QuotaPod{{"p1", 2000}}, Zone{CPUs: cpuset.New(2, 3), Partition: PartitionRoot, Scope: ScopeContainer}, ""},
		{"mixed", lifting, []QuotaPod{{"p1", 2000}}, Zone{CPUs: cpuset.New(2, 3), Mems: cpuset.New(0), Mixed: true, Partition: PartitionNone, Scope: ScopeContainer}, ""},
		{"memory only", lifting, []QuotaPod{{"p1", 2000}}, Zone{Mems: cpuset.New(0), Partition: PartitionNone, Scope: ScopeContainer}, ""},
	} {
		claim := Claim{UID: uid, Namespace: "default", Name: "c", QuotaPods: row.pods, Shares: []Share{{Request: "r", Device: "numa-0", Kind: &row.zone}}}
		spec, err := Render(claim, row.hook)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, arg := range spec.Devices[0].ContainerEdits.Hooks[0].Args {
			if strings.HasPrefix(arg, "--lift-quota") {
				got = arg
			}
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// The runtimes read specs with this cache.
func TestRuntimeFindsEveryDevice(t *testing.T) {
	dir := files.OpenTemp(t)
	claim := fullClaim()
	claim.Note = strings.Repeat("a note of 128 KiB", 128<<10/17)
	claim.Shares = append(append(claim.Shares, pciClaim().Shares...), joinedClaim().Shares...)
	if err := write(NewStore(dir), claim); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir.Name()), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if problems := cache.GetErrors(); len(problems) > 0 {
		t.Fatal(slices.Collect(maps.Values(problems)))
	}
	for _, share := range claim.Shares {
		id := DeviceID(uid, share.Request, share.Device)
		if cache.GetDevice(id) == nil {
			t.Errorf("device %s is not among %v", id, cache.ListDevices())
		}
	}
}

// No runtime finds the device of a function that is lost, and the others stay.
func TestLostFunctionHasAnotherName(t *testing.T) {
	claim := pciClaim()
	lost := &claim.Shares[0]
	before := lost.DeviceID(uid)
	lost.Kind = &Function{PCI: lost.Kind.(*Function).PCI, Lost: true}
	spec, err := Render(claim, hook)
	if err != nil {
		t.Fatal(err)
	}
	if before != DeviceID(uid, lost.Request, lost.Device) || lost.DeviceID(uid) == before || Kind+"="+spec.Devices[0].Name != lost.DeviceID(uid) {
		t.Errorf("device %s, %s in the spec; before %s", lost.DeviceID(uid), spec.Devices[0].Name, before)
	}
	if edits := spec.Devices[0].ContainerEdits; len(edits.Env) == 0 || len(edits.DeviceNodes)+len(edits.Hooks) > 0 {
		t.Errorf("edits %+v, want only an environment: runtimes refuse a spec that has a device without edits", edits)
	}
	if spec.Devices[1].Name != deviceName(uid, claim.Shares[1].Request, claim.Shares[1].Device) {
		t.Errorf("the second device is %s", spec.Devices[1].Name)
	}
}

func TestRenderRefusesWhatTheHookWould(t *testing.T) {
	for name, change := range map[string]func(*Claim){
		"no uid":        func(c *Claim) { c.UID = "" },
		"path as uid":   func(c *Claim) { c.UID = "../../etc/x" },
		"namespace":     func(c *Claim) { c.Namespace = "a\nLD_PRELOAD=x" },
		"name":          func(c *Claim) { c.Name = "a b" },
		"request":       func(c *Claim) { c.Shares[0].Request = "a=b" },
		"two slashes":   func(c *Claim) { c.Shares[0].Request = "a/b/c" },
		"empty subname": func(c *Claim) { c.Shares[0].Request = "a/" },
		"device":        func(c *Claim) { c.Shares[0].Device = "numa_0" },
		"quota pod":     func(c *Claim) { c.QuotaPods = []QuotaPod{{UID: "a,b --records=/etc"}} },
		"no shares":     func(c *Claim) { c.Shares = nil },
		"no partition":  func(c *Claim) { c.Shares[0].Kind.(*Zone).Partition = "" },
		"partition":     func(c *Claim) { c.Shares[0].Kind.(*Zone).Partition = "member" },
		"no scope":      func(c *Claim) { c.Shares[0].Kind.(*Zone).Scope = "" },
		"scope":         func(c *Claim) { c.Shares[0].Kind.(*Zone).Scope = "shared" },
		"address":       func(c *Claim) { *c = pciClaim(); c.Shares[0].Kind.(*Function).PCI = "3b:00.0" },
		"node path":     func(c *Claim) { *c = pciClaim(); c.Shares[0].Kind.(*Function).Nodes[0].Path = "/dev/../etc/shadow" },
		"node type":     func(c *Claim) { *c = pciClaim(); c.Shares[0].Kind.(*Function).Nodes[0].Type = "p" },
		"interface":     func(c *Claim) { *c = pciClaim(); c.Shares[1].Kind.(*Function).Interfaces[0] = "a\nLD_PRELOAD=x" },
	} {
		claim := fullClaim()
		change(&claim)
		if spec, err := Render(claim, hook); err == nil {
			t.Errorf("%s: rendered %+v", name, spec)
		}
	}
}

func TestWriteAgainLeavesFileAlone(t *testing.T) {
	dir := files.OpenTemp(t)
	store := NewStore(dir)
	for range 2 {
		if err := write(store, fullClaim()); err != nil {
			t.Fatal(err)
		}
		// A second replacement would need this name, and fail.
		if err := os.MkdirAll(dir.Name()+"/"+fileName(uid)+".new/in-the-way", 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRemoveExceptRemovesOnlyOurOrphans(t *testing.T) {
	dir := files.OpenTemp(t)
	for _, name := range []string{"vendor.json", "dra.numa-claim_a.json", "dra.numa-claim_b.json", "dra.numa-claim_a.json.new"} {
		if err := dir.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := NewStore(dir).RemoveExcept(func(uid string) bool { return uid == "a" }); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{"dra.numa-claim_a.json", "vendor.json"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for range 2 {
		if err := NewStore(dir).Remove("a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"vendor.json"}) {
		t.Errorf("files %v", got)
	}
}

func TestNotesAreReadBack(t *testing.T) {
	dir := files.OpenTemp(t)
	store := NewStore(dir)
	if err := write(store, fullClaim()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"vendor.json":                        `{"annotations":{"dra.numa/grant":"x"}}`,
		"dra.numa-claim_half.json.new":       `{"annotations":{"dra.numa/grant":"x"}}`,
		"dra.numa-claim_by-somebody.json":    `{"annotations":{"other":"x"}}`,
		"dra.numa-claim_damaged.json":        `{"annotations":{"dra.numa/grant":"x"}`,
		"dra.numa-claim_of-a-number.json":    `{"annotations":{"dra.numa/grant":1}}`,
		"dra.numa-claim_partly-unusual.json": `{"annotations":{"other":1,"dra.numa/grant":"x"}}`,
	} {
		if err := dir.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	notes, err := store.Notes()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{uid: `{"any":"text"}`, "by-somebody": "", "damaged": "", "of-a-number": "", "partly-unusual": ""}
	for _, note := range notes {
		text, known := want[note.ClaimUID]
		if !known || note.Text != text || note.Path != dir.Name()+"/"+fileName(note.ClaimUID) {
			t.Errorf("note %+v, want text %q", note, text)
		}
		delete(want, note.ClaimUID)
	}
	if len(want) > 0 {
		t.Errorf("no notes of %v", want)
	}
}

func TestTimeInFsyncIsCounted(t *testing.T) {
	dir := files.OpenTemp(t)
	store := NewStore(dir)
	before := store.SyncTime()
	if err := write(store, fullClaim()); err != nil {
		t.Fatal(err)
	}
	first := store.SyncTime()
	if err := write(store, fullClaim()); err != nil { // says so already
		t.Fatal(err)
	}
	if before != 0 || first <= 0 || store.SyncTime() != first {
		t.Errorf("time in fsync %s, %s, %s, want none, some, no more", before, first, store.SyncTime())
	}
}

func TestVersionsOfASpecAreDocumented(t *testing.T) {
	files.Contains(t, files.Read(t, "../docs/upgrading.md"), "| CDI spec | "+specVersion+", or "+joinVersion+" for a container that joins a group of resctrl |")
}
