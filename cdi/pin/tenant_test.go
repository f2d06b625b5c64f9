package pin

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// tenantTree is a container with a partition of CPUs 2-3 and a writable cgroup. The tenant
// has made partitions below it, of which the kernel grants one or none.
func tenantTree(own, state, granted, grandchild string) fstest.MapFS {
	cgroups := fstest.MapFS{"cgroup.controllers": {Data: []byte("cpuset\n")}}
	put := func(dir, cpus, exclusive, state, effective string) {
		for name, text := range map[string]string{
			cpusFile: cpus, exclusiveFile: exclusive, partitionFile: state, cpusFile + ".effective": effective,
			exclusiveFile + ".effective": exclusive, memsFile: "", memsFile + ".effective": "0", "cgroup.events": "populated 1\nfrozen 0",
		} {
			file := name
			if dir != "" {
				file = dir + "/" + name
			}
			cgroups[file] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
	}
	put("", "", "", member, "0-1,4-15")
	put("k", "", "2-3", member, "0-1,4-15")
	put("k/pod", "", "2-3", member, "0-1,4-15")
	put("k/pod/a", "2-3", "2-3", "root", own)
	put("k/pod/a/init", "", "", member, own)
	put("k/pod/a/mine", "0-15", "", state, granted)
	put("k/pod/a/mine/deep", "2", "0-8", "isolated", grandchild)
	return cgroups
}

// Tenants with a writable cgroup may divide their CPUs with partitions of their own. These
// CPUs were missing in the container's cpuset.cpus.effective, so the zone got a taint. The
// CPUs that a partition of a tenant only asks for counted as held, so a tenant could block
// all CPUs of the node, and have the hooks of other claims fail.
func TestPartitionsOfATenantAreItsOwnMatter(t *testing.T) {
	records := pinned(t, record{Boot: "boot", Cgroup: "k/pod/a", Scope: ScopeContainer, Claims: []Claim{claimed("job", "2-3", "", PartitionRoot)}})
	for name, cgroups := range map[string]fstest.MapFS{
		"one CPU":                 tenantTree("2", "root", "3", ""),
		"all CPUs":                tenantTree("", "root", "2-3", ""),
		"a partition in another":  tenantTree("2", "root", "", "3"),
		"refused by the kernel":   tenantTree("2-3", "root invalid (cpu list in cpuset.cpus not exclusive)", "2-3", "2-3"),
		"refused, with CPUs left": tenantTree("2", "isolated", "3", "3"),
	} {
		live, err := Inspect(cgroups, records)
		if err != nil || len(live) != 1 || live[0].Fault != "" {
			t.Errorf("%s: Inspect = %+v, %v, want no fault", name, live, err)
		}
		d := decide([]record{{Boot: "boot", Cgroup: "k/pod/a", Scope: ScopeContainer, Claims: []Claim{claimed("job", "2-3", "", PartitionRoot)}}})[0]
		if err := check(cgroups, d); err != nil {
			t.Errorf("%s: the keeper finds %v", name, err)
		}
		holdings, err := Holdings(cgroups)
		if err != nil {
			t.Fatal(err)
		}
		var held cpuset.Set
		for _, h := range holdings {
			held = held.Union(h.CPUs)
		}
		if held != parse("2-3") {
			t.Errorf("%s: partitions hold cpus %s (%v), want 2-3", name, held, holdings)
		}
		var all tree
		err = all.walk(cgroups, "")
		if err == nil {
			err = all.checkFree("k/other", parse("0-1,4-15"))
		}
		if err != nil {
			t.Errorf("%s: CPUs that no claim has: %v", name, err)
		}
	}
	lost := tenantTree("2", "root invalid (Invalid cpu list in cpuset.cpus.exclusive)", "", "")
	if live, err := Inspect(lost, records); err != nil || len(live) != 1 || live[0].Fault == "" {
		t.Errorf("CPU 3 is nowhere: Inspect = %+v, %v, want a fault", live, err)
	}
}

// When the container has ended, its partitions hold nothing, whatever is below it: also after
// a keeper that was killed between two writes.
func TestReleaseBelowWhichATenantMadePartitions(t *testing.T) {
	ended, killed := tenantTree("2", "root", "3", ""), tenantTree("2-3", "root invalid (Parent is not a partition root)", "2-3", "")
	killed["k/pod/a/"+partitionFile] = &fstest.MapFile{Data: []byte(member + "\n")}
	all := []Write{{"k/pod/a/" + exclusiveFile, ""}, {"k/pod/" + exclusiveFile, ""}, {"k/" + exclusiveFile, ""}}
	for _, row := range []struct {
		cgroups fstest.MapFS
		want    []Write
	}{
		{ended, append([]Write{{"k/pod/a/" + partitionFile, member}}, all...)},
		{killed, all},
	} {
		var t1 tree
		if err := t1.walk(row.cgroups, ""); err != nil {
			t.Fatal(err)
		}
		if got := planRelease(t1, "k/pod/a").Writes; !slices.Equal(got, row.want) {
			t.Errorf("release writes %v, want %v", got, row.want)
		}
	}
}
