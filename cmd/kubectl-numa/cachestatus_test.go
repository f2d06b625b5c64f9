package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

func TestCachesInEveryForm(t *testing.T) {
	dir := folderOf(t, occupied.Divided(t))
	wide := mustCall(t, "status", "--cache", "-f", dir, "-o", "wide")
	const want = `NODE      L3  POOL        WAYS FREE  CLASSES FREE  MEMBERS FREE  CLAIMS
worker-1  0   guaranteed  4 of 10    6 of 8        -             prod/gold-a,prod/gold-b
worker-1  0   besteffort  5 of 7     4 of 5        -             prod/silver
worker-1  0   shared      -          -             7 of 10       prod/bronze-0,prod/bronze-1,prod/bronze-2
worker-1  1   guaranteed  0 of 10    7 of 8        -             prod/gold-c
worker-1  1   besteffort  7 of 7     5 of 5        -             -
worker-1  1   shared      -          -             10 of 10      -
`
	if diff := cmp.Diff(want, wide); diff != "" {
		t.Errorf("wide (-want +got):\n%s", diff)
	}
	if names := mustCall(t, "status", "--cache", "-f", dir, "-o", "name"); names != "node/worker-1\n" {
		t.Errorf("names are %q", names)
	}
	if picture := mustCall(t, "status", "--cache", "-f", dir, "-o", "svg"); !strings.HasPrefix(picture, "<svg ") || !strings.Contains(picture, "cache 1, NUMA node 1") {
		t.Errorf("svg is\n%s", picture)
	}
	if free := mustCall(t, "status", "--cache", "-f", dir, "-o", "jsonpath={.nodes[*].caches[*].pools[?(@.pool==\"guaranteed\")].ways.free}"); free != "4 0" {
		t.Errorf("free ways are %q", free)
	}
	text := mustCall(t, "status", "--cache", "-f", dir, "-o", "json")
	var fromJSON, fromYAML holdings.Caches
	if err := json.Unmarshal([]byte(text), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(mustCall(t, "status", "--cache", "-f", dir, "-o", "yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, fromJSON), asJSON(t, fromYAML)); diff != "" {
		t.Errorf("(-json +yaml):\n%s", diff)
	}
	silver := fromJSON.Nodes[0].Caches[0].Pools[1].Shares[0]
	if !strings.Contains(text, `"kind": "CacheStatus"`) || silver.Cache == nil || silver.Cache.MaxWays != 5 || silver.Cache.BandwidthPercent != 50 {
		t.Errorf("json is\n%s", text)
	}
}

func TestStatusOfANodeWithoutDividedCachesIsOneLine(t *testing.T) {
	dir := folderOf(t, occupied.Divided(t))
	for _, args := range [][]string{{"worker-2", "-f", dir}, {"-f", showcase(t)}} {
		if text := mustCall(t, append([]string{"status", "--cache"}, args...)...); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "No caches are divided: ") {
			t.Errorf("%s:\n%s", args[0], text)
		}
	}
}

// All formats of status know caches. Limits of bandwidth are no sums.
func TestStatusShowsDividedCaches(t *testing.T) {
	dir := folderOf(t, occupied.Divided(t))
	wide := mustCall(t, "status", "worker-1", "-f", dir, "-o", "wide")
	testfiles.Contains(t, wide,
		"worker-1/numa-0              shared  cpu 8 of 20, memory 974Mi of 974Mi",
		"cache-0-guaranteed  shared  ways 4 of 10, classes 6 of 8 ", "cache-0-shared      shared  members 7 of 10 ",
	)
	for _, format := range []string{"table", "svg", "json", "yaml", "name"} {
		if text := mustCall(t, "status", "-f", dir, "-o", format); format != "name" && !strings.Contains(text, "cache-0-guaranteed") {
			t.Errorf("%s has no cache-0-guaranteed in\n%s", format, text)
		}
	}
}

// Only the nodes know which ways claims have, and what the kernel counts.
func TestStatusAsksTheNodesAboutCaches(t *testing.T) {
	a := installedCluster(t)
	const claims = `{"uid": "u", "name": "prod/a", "group": "mon_groups/dra-numa.u", "caches": [{"l3": 0, "occupancyBytes": 3145728, "totalBytes": 1024, "zones": [{"numaNode": 1, "localBytes": 1}]}]},
		{"uid": "v", "name": "test/b", "why": "no RMID"}`
	a[pod] = stateOf(`{"resctrl": {"caches": [], "rmids": {"total": 32, "used": 2}, "claims": [` + claims + `]}}`)
	t.Setenv("KUBECONFIG", a.serve(t))
	const table = `NODE      L3              CLAIM   OCCUPIED  ALL MEMORY  NEAR MEMORY  GROUP                  NOT COUNTED
worker-1  0               prod/a  3 MiB     1 KiB       -            mon_groups/dra-numa.u  -
worker-1  0, NUMA node 1  prod/a  -         -           1 byte       mon_groups/dra-numa.u  -
worker-1  -               test/b  -         -           -            -                      no RMID
`
	if diff := cmp.Diff(strings.ReplaceAll(table, "1 byte ", "1 bytes"), mustCall(t, "status", "--cache", "--ask-nodes", "-o", "wide")); diff != "" {
		t.Errorf("wide (-want +got):\n%s", diff)
	}
	for args, want := range map[string]string{
		"":        "RMIDs: 30 of 32 left",
		"-o name": "node/worker-1\n",
		"-o jsonpath={.resctrl[*].claims[*].name}":                     "prod/a test/b",
		"-o jsonpath={.resctrl[*].claims[0].caches[0].occupancyBytes}": "3145728",
		"-o svg": "prod/a",
	} {
		if got := mustCall(t, append([]string{"status", "--cache", "--ask-nodes"}, strings.Fields(args)...)...); !strings.Contains(got, want) {
			t.Errorf("%q: want %q in\n%s", args, want, got)
		}
	}
	for args, want := range map[string]string{
		"--ask-nodes":                    "--ask-nodes: it is about caches, want --cache as well",
		"--cache --ask-nodes --watch":    "--ask-nodes: nodes are asked once, want no --watch",
		"--cache --ask-nodes -f folder/": "--ask-nodes: files have no answers of nodes, want a cluster without --filename",
	} {
		if exitCode, stdout, stderr := call(append([]string{"status"}, strings.Fields(args)...)...); exitCode == 0 || stdout != "" || stderr != "kubectl-numa: error: "+want+"\n" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, exitCode, stdout, stderr)
		}
	}
	for namespace, want := range map[string]int{"": 3, "prod": 2, "pro": 0} {
		uses := []nodestate.ClaimUse{{Claim: nodestate.Claim{Name: "prod/a"}}, {Claim: nodestate.Claim{Name: "prod/a"}}, {Claim: nodestate.Claim{Name: "test/b"}}}
		if got := usesIn(namespace, uses); len(got) != want {
			t.Errorf("in %q: %+v", namespace, got)
		}
	}
	a[pod] = stateOf(`{"problems": [{"part": "resctrl", "why": "resctrl is not mounted"}]}`)
	if exitCode, stdout, stderr := call("status", "--cache", "--ask-nodes"); exitCode != 0 || !strings.HasPrefix(stdout, "No caches are divided: ") || !strings.Contains(stderr, "the caches of worker-1 are not known: resctrl is not mounted") {
		t.Errorf("exit code %d, stdout %q, stderr %q", exitCode, stdout, stderr)
	}
}
