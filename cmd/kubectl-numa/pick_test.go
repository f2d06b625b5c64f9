package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestPick(t *testing.T) {
	rig := sample.Folder(t, "rig") // zones of two cores of two threads, an L3 each
	for args, want := range map[string]string{
		"--cpus 2": "cpus       2-3\nnode 0     2-3\n" +
			"why        1 whole core in L3 0, the tightest with 2 free\nreserved   0-1\n",
		"--cpus 4 --used 6": "cpus       8-11\nnode 2     8-11\n" +
			"why        2 whole cores in L3 2, the tightest with 4 free\n" +
			"not        node 0: select 4 cpus of zone 0, which has 2 free: not enough free cpus\n" +
			"not        node 1: select 4 cpus of zone 1, which has 3 free: not enough free cpus\n" +
			"reserved   0-1\nused       6\n",
		"--cpus 4 --zone 1,3": "cpus       4-5,12-13\nnode 1     4-5\nnode 3     12-13\n" +
			"why        2 whole cores in 2 L3s of 2 zones\nreserved   0-1\n",
		"--cpus 2 --zone 3 --policy one-thread-per-core,l3=require": "cpus       12,14\nidle       13,15\nnode 3     12,14\n" +
			"why        2 cores with 2 cpus kept idle in L3 3, the tightest with 2 cores free\nreserved   0-1\n",
		"--cpus 8 --policy distribute": "cpus       2-5,8-9,12-13\nnode 0     2-3\nnode 1     4-5\nnode 2     8-9\nnode 3     12-13\n" +
			"why        4 whole cores in 4 L3s of 4 zones\nreserved   0-1\n",
	} {
		got := mustCall(t, append([]string{"pick", "--root", rig}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pick %s (-want +got):\n%s", args, diff)
		}
	}
}

func TestPickInJSON(t *testing.T) {
	config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: 0-3\n")
	got := mustCall(t, "pick", "--root", sample.Folder(t, "rig"), "--cpus", "2", "--config", config, "-o", "json")
	const want = `{
  "apiVersion": "cli.dra.numa/v1alpha1",
  "kind": "CPUChoice",
  "cpus": "4-5",
  "idle": "",
  "nodes": [
    {
      "node": 1,
      "cpus": "4-5"
    }
  ],
  "why": "1 whole core in L3 1, the tightest with 4 free",
  "tried": [
    {
      "node": 0,
      "why": "select 2 cpus of zone 0, which has 0 free: not enough free cpus"
    }
  ],
  "reserved": "0-3",
  "used": ""
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pick (-want +got):\n%s", diff)
	}
}
