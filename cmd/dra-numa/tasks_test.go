package main

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

func TestTasksAreCountedByCgroupAndGroup(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	proc := fstest.MapFS{
		"self/cgroup":                     file("garbage"),
		"1/cgroup":                        file("0::/../../../init.scope\n"),
		"1/task/1/cpu_resctrl_groups":     file("res:/\nmon:/\n"),
		"40/cgroup":                       file("0::/../../pod1/abc\n"),
		"40/task/40/cpu_resctrl_groups":   file("res:dra-numa.3\nmon:/\n"),
		"40/task/41/cpu_resctrl_groups":   file("res:dra-numa.3\nmon:/\n"),
		"40/task/42/cpu_resctrl_groups":   file("res:other\nmon:/\n"),
		"50/cgroup":                       file("12:cpuset:/x\n0::/..pod/abc\n"),
		"50/task/50/cpu_resctrl_groups":   file("res:/\nmon:/\n"),
		"50/task/51":                      {Mode: 0o555 | 1<<31}, // it has ended meanwhile
		"60/task":                         {Mode: 0o555 | 1<<31},
		"70/cgroup":                       file("0::/\n"),
		"70/task/70/cpu_resctrl_groups":   file("res:/\nmon:/\n"),
		"sys/kernel/random/boot_id":       file("x"),
		"200/cgroup":                      file("0::/../../pod1/abc\n"),
		"200/task/200/cpu_resctrl_groups": file("res:dra-numa.3\nmon:/\n"),
	}
	got, err := taskGroups(proc)
	want := []nodestate.TaskGroup{
		{Tasks: 1},
		{Cgroup: "..pod/abc", Tasks: 1},
		{Cgroup: "init.scope", Tasks: 1},
		{Cgroup: "pod1/abc", Group: "dra-numa.3", Tasks: 3},
		{Cgroup: "pod1/abc", Group: "other", Tasks: 1},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	proc["40/task/42/cpu_resctrl_groups"] = file("garbage")
	if _, err := taskGroups(proc); err == nil {
		t.Error("garbage is a group")
	}
}

func TestTasksMatterToWaysOnly(t *testing.T) {
	zone, cache := ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}}}, ledger.Share{Kind: &ledger.CacheShare{}}
	if hasWays([]ledger.Grant{{Shares: []ledger.Share{zone}}}) || !hasWays([]ledger.Grant{{}, {Shares: []ledger.Share{zone, cache}}}) {
		t.Error("the claims with ways are others")
	}
}
