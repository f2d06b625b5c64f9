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
		"--cpus 2": "zone       numa-0\ncpus       2-3\nnode 0     2-3\n" +
			"why        1 whole core in L3 0, the tightest with 2 free\nreserved   0-1\n",
		"--cpus 4 --used 6": "zone       numa-2\ncpus       8-11\nnode 2     8-11\n" +
			"why        2 whole cores in L3 2, the tightest with 4 free\n" +
			"not        numa-0 has 2 free\n" +
			"not        numa-1 has 3 free\n" +
			"reserved   0-1\nused       6\n",
		"--cpus 3 --zone 1,3": "zone       numa-1\ncpus       4-7\nnode 1     4-7\n" +
			"why        2 whole cores in L3 1, the tightest with 4 free\nreserved   0-1\n",
		"--cpus 4 --zone numa-3 --policy one-thread-per-core,l3=require": "zone       numa-3\ncpus       12,14\nidle       13,15\nnode 3     12,14\n" +
			"why        2 whole cores in L3 3, the tightest with 4 free; 2 of the 4 cpus kept idle\nreserved   0-1\n",
		"--cpus 6 --zone 0-1 --config " + nodeConfigFile(t, "zoneBy: socket"): "zone       socket-0\ncpus       2-7\nnode 0     2-3\nnode 1     4-7\n" +
			"why        3 whole cores in 2 L3s because none has 6 free\nreserved   0-1\n",
		"--cpus 12 --policy distribute --used 6-7 --config " + nodeConfigFile(t, "zoneBy: machine"): "zone       machine\ncpus       2-5,8-15\nnode 0     2-3\nnode 1     4-5\nnode 2     8-11\nnode 3     12-15\n" +
			"why        6 whole cores in 4 L3s of 4 zones\nreserved   0-1\nused       6-7\n",
		"--cpus 2 --config " + nodeConfigFile(t, "zoneBy: l3"): "zone       l3-0\ncpus       2-3\nnode 0     2-3\n" +
			"why        1 whole core in L3 0, the tightest with 2 free\nreserved   0-1\n",
		"--cpus 2 --used 4-5 --config " + nodeConfigFile(t, "zoneOrder: spread"): "zone       numa-2\ncpus       8-9\nnode 2     8-9\n" +
			"why        1 whole core in L3 2, the tightest with 4 free\nreserved   0-1\nused       4-5\n",
	} {
		got := mustCall(t, append([]string{"pick", "--root", rig}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pick %s (-want +got):\n%s", args, diff)
		}
	}
}

// nodeConfigFile writes a NodeConfig with one field.
func nodeConfigFile(t *testing.T, field string) string {
	t.Helper()
	return file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"+field+"\n")
}

func TestPickInJSON(t *testing.T) {
	config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: 0-3\n")
	got := mustCall(t, "pick", "--root", sample.Folder(t, "rig"), "--cpus", "3", "--config", config, "--used", "4", "-o", "json")
	const want = `{
  "apiVersion": "cli.dra.numa/v1alpha1",
  "kind": "CPUChoice",
  "zone": "numa-2",
  "cpus": "8-11",
  "idle": "",
  "nodes": [
    {
      "node": 2,
      "cpus": "8-11"
    }
  ],
  "why": "2 whole cores in L3 2, the tightest with 4 free",
  "tried": [
    {
      "zone": "numa-1",
      "why": "has 3 free"
    }
  ],
  "reserved": "0-3",
  "used": "4"
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pick (-want +got):\n%s", diff)
	}
}
