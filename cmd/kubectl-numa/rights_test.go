package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/migration"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// rights are verbs of an API group's resource, or of a path. A right in the driver's
// namespace only ends with " in dra-numa".
type rights map[string]bool

func (r rights) add(verb, group, resource string) { r[verb+" "+group+"/"+resource] = true }

// recorder is an API server that keeps what it was asked for. It grants everything.
type recorder struct {
	answers

	mu    sync.Mutex
	asked rights
}

// right returns the right that a request needs.
func (rec *recorder) right(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var group, namespace string
	switch {
	case parts[0] == "api":
		parts = parts[2:]
	case parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "get " + r.URL.Path
	}
	if parts[0] == "namespaces" {
		namespace = parts[1]
		if len(parts) > 2 {
			parts = parts[2:]
		}
	}
	verb, resource := "list", parts[0]
	switch {
	case len(parts) > 2:
		verb, resource = "get", parts[0]+"/"+parts[2]
	case len(parts) > 1:
		verb = "get"
	case r.FormValue("watch") != "":
		verb = "watch"
	}
	right := verb + " " + group + "/" + resource
	if namespace == "dra-numa" {
		right += " in " + namespace
	}
	return right
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isDiscovery(r.URL.Path) { // Kubernetes allows everyone to ask what a group has
		rec.mu.Lock()
		rec.asked[rec.right(r)] = true
		rec.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	switch answer := rec.answers[r.URL.Path].(type) {
	case http.Handler:
		answer.ServeHTTP(w, r)
	case string:
		fmt.Fprint(w, answer)
	case nil:
		http.NotFound(w, r)
	default:
		if r.FormValue("sendInitialEvents") != "" {
			http.Error(w, "not known", http.StatusUnprocessableEntity) // clients then list
			return
		}
		if r.FormValue("watch") != "" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// commandLines are the commands that read a cluster, by the name of the command. Those
// without a line read no cluster.
var commandLines = map[string][]string{
	"drift":    {"drift"},
	"features": {"features"},
	"version":  {"version"},
	"explain": {
		"explain pod stuck -n team", "explain pod default/a", "explain claim cpus -n team", "explain deployment web -n team", "explain replicaset web-1 -n team",
		"explain pods -n team", "explain claims -A", "explain statefulset s -n team", "explain daemonset d -n team", "explain job j -n team",
	},
	"gather":            {"gather --file FILE"},
	"migrate":           {"migrate"},
	"lint":              {"lint --from-cluster -f DIR"},
	"simulate":          {"simulate"},
	"status":            {"status"},
	"suggest-evictions": {"suggest-evictions pod default/a"},
	"taint":             {"taint worker-1/numa-0"},
	"translate":         {"translate"},
	"validate":          {"validate"},

	"ui":       nil, // see browse
	"generate": nil, "pick": nil, "slices": nil, "topology": nil,
}

// policiesPath is where the API server says which NRI resource policies it has.
const policiesPath = "/apis/" + diagnosis.PolicyGroup + "/" + diagnosis.PolicyVersion

// isDiscovery reports whether a request asks what a version of an API group has.
func isDiscovery(path string) bool {
	return strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") == 3
}

// policies are the resources of a cluster with NRI resource policies.
const policies = `{"resources": [{"name": "balloonspolicies", "kind": "BalloonsPolicy"}, {"name": "balloonspolicies/status", "kind": "BalloonsPolicy"},
	{"name": "templatepolicies", "kind": "TemplatePolicy"}, {"name": "topologyawarepolicies", "kind": "TopologyAwarePolicy"}]}`

// askedRights runs all commands, and returns which rights they need.
func askedRights(t *testing.T) rights {
	t.Helper()
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "starting.yaml"), startingCluster)
	objects, err := files{dir}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := installedCluster(t)
	a[policiesPath] = policies
	for _, resource := range []string{"balloonspolicies", "templatepolicies", "topologyawarepolicies"} {
		a[policiesPath+"/"+resource] = `{"items": []}`
	}
	for _, resource := range migration.Resources() {
		group := "/apis/" + resource.Group + "/" + resource.Version
		known, _ := a[group].(string)
		known = strings.TrimSuffix(strings.TrimPrefix(known, `{"resources": [`), "]}")
		a[group] = `{"resources": [` + strings.TrimPrefix(known+`, {"name": "`+resource.Name+`"}`, ", ") + "]}"
		a[group+"/"+resource.Name] = `{"kind": "List", "items": []}`
	}
	pods := slices.Concat(objects.Pods, snapshotOf(t, a).Pods)
	for path, answer := range (answers{
		"/api/v1/pods": listOf("PodList", "v1", pods),
		"/apis/resource.k8s.io/v1/resourceclaims":         listOf("ResourceClaimList", resources, objects.Claims),
		"/api/v1/namespaces/team/events":                  listOf("EventList", "v1", objects.Events),
		"/apis/apps/v1/namespaces/team/deployments":       listOf("DeploymentList", "apps/v1", objectsOf(objects.Workloads[:1])),
		"/apis/apps/v1/namespaces/team/replicasets":       listOf("ReplicaSetList", "apps/v1", objectsOf(objects.Workloads[1:])),
		"/apis/apps/v1/namespaces/team/statefulsets":      listOf("StatefulSetList", "apps/v1", []appsv1.StatefulSet{}),
		"/apis/apps/v1/namespaces/team/daemonsets":        listOf("DaemonSetList", "apps/v1", []appsv1.DaemonSet{}),
		"/apis/batch/v1/namespaces/team/jobs":             listOf("JobList", "batch/v1", []batchv1.Job{}),
		"/apis/apps/v1/namespaces/dra-numa/deployments":   listOf("DeploymentList", "apps/v1", []appsv1.Deployment{{}}),
		"/apis/apps/v1/namespaces/dra-numa/replicasets":   listOf("ReplicaSetList", "apps/v1", []appsv1.ReplicaSet{}),
		"/apis/resource.k8s.io/v1/resourceclaimtemplates": listOf("ResourceClaimTemplateList", resources, objects.Templates),
	}) {
		a[path] = answer
	}
	rec := &recorder{answers: a, asked: make(rights)}
	server := httptest.NewServer(rec)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, server.URL))
	replace := strings.NewReplacer("FILE", filepath.Join(t.TempDir(), "bundle.tar.gz"), "DIR", clusterFolder(t, "cpu: 2"))
	for _, command := range (cli{name: program}).rootCommand().Commands() {
		lines, known := commandLines[command.Name()]
		if !known {
			t.Errorf("commandLines lacks %s: which rights does it need?", command.Name())
		}
		for _, line := range lines {
			if exitCode, _, stderr := call(strings.Split(replace.Replace(line), " ")...); strings.Contains(stderr, "cannot be read") {
				t.Errorf("%s: exit code %d, %s", line, exitCode, stderr)
			}
		}
	}
	browse(t, rec)
	rec.mu.Lock() // what a command has begun may still ask
	defer rec.mu.Unlock()
	return maps.Clone(rec.asked)
}

// browse runs ui with all its pages, until it watches all kinds, as status --watch does.
func browse(t *testing.T, rec *recorder) {
	t.Helper()
	address, _ := serveUI(t, pages{anyUser: true, layout: true})
	watched := func() (count int) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		for right := range rec.asked {
			if strings.HasPrefix(right, "watch ") {
				count++
			}
		}
		return count
	}
	eventually(t, address+"nodes/worker-1", "The CPUs are not drawn")
	eventually(t, address+"nodes/worker-1/zones/numa-0", "events about")
	for deadline := time.Now().Add(time.Minute); watched() < 7 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}

// snapshotOf returns the objects of an API server.
func snapshotOf(t *testing.T, a answers) *snapshot.Snapshot {
	t.Helper()
	objects, err := (&source{connection: connection{kubeconfig: a.serve(t)}}).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// notGiven are the rights that commands use and that the viewer's role does not have:
// both can be used to take over nodes.
var notGiven = []string{"get /pods/exec in dra-numa", "get /nodes/proxy"}

// viewerRights are those of the chart's role. The tests of the chart compare this file
// with the chart.
func viewerRights(t *testing.T) rights {
	t.Helper()
	found := make(rights)
	for document := range strings.SplitSeq(testfiles.Read(t, "../../test/chart/testdata/every-value.yaml"), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil || role.Labels[diagnosis.ComponentLabel] != "viewer" {
			continue
		}
		within := ""
		if role.Kind == "Role" {
			within = " in dra-numa" // the driver's namespace in the answers
		}
		if role.AggregationRule != nil || strings.Contains(document, "rbac.authorization.k8s.io/aggregate-to") {
			t.Errorf("the role is aggregated:\n%s", document)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, path := range rule.NonResourceURLs {
					found[verb+" "+path] = true
				}
				for _, resource := range rule.Resources {
					found.add(verb, rule.APIGroups[0], resource+within)
				}
			}
		}
	}
	return found
}

// documentedRights are those of the table in the documentation.
func documentedRights(t *testing.T) rights {
	t.Helper()
	found := make(rights)
	_, section, _ := strings.Cut(testfiles.Read(t, "../../docs/kubectl-numa.md"), "\n## Rights\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		group, within := strings.Join(codes(cells[2]), ""), ""
		if strings.Contains(cells[1], "driver's namespace") {
			within = " in dra-numa"
		}
		for _, verb := range codes(cells[0]) {
			for _, resource := range codes(cells[1]) {
				if strings.HasPrefix(resource, "/") {
					found[verb+" "+resource] = true
				} else {
					found.add(verb, group, resource+within)
				}
			}
		}
	}
	return found
}

// What the commands ask the API server for, the chart's role and the documentation are
// the same rights.
func TestViewerMayDoWhatTheCommandsDo(t *testing.T) {
	asked, given := askedRights(t), viewerRights(t)
	for _, right := range notGiven {
		if !asked[right] {
			t.Errorf("no command uses %q", right)
		}
		if given[right] {
			t.Errorf("the role has %q", right)
		}
		delete(asked, right)
	}
	for right := range asked {
		// A right in all namespaces includes that in one.
		if everywhere := strings.TrimSuffix(right, " in dra-numa"); everywhere != right && given[everywhere] {
			delete(asked, right)
			asked[everywhere] = true
		}
	}
	if diff := cmp.Diff(asked, given); diff != "" {
		t.Errorf("rights (-asked for +in the chart):\n%s", diff)
	}
	if diff := cmp.Diff(given, documentedRights(t)); diff != "" {
		t.Errorf("rights (-in the chart +documented):\n%s", diff)
	}
}
