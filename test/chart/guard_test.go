package chart

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// installed are objects of a cluster, as JSON, by the path of their list.
type installed map[string][]string

// The lists that the chart reads.
const (
	daemonSets = "/apis/apps/v1/daemonsets"
	bindings   = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	policies   = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
)

// kinds are those of the lists.
var kinds = map[string]string{daemonSets: "DaemonSet", bindings: "ClusterRoleBinding", policies: "ValidatingAdmissionPolicy"}

// ServeHTTP answers as an API server that has these objects, and no others.
func (objects installed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	reply := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
	switch folder, _ := filepath.Split(r.URL.Path); {
	case r.URL.Path == "/version":
		reply = map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
	case r.URL.Path == "/api":
		reply = map[string]any{"kind": "APIVersions", "versions": []string{}}
	case r.URL.Path == "/apis":
		reply = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
	case kinds[r.URL.Path] != "":
		items := []json.RawMessage{}
		for _, object := range objects[r.URL.Path] {
			items = append(items, json.RawMessage(object))
		}
		group := strings.TrimPrefix(strings.TrimSuffix(folder, "/"), "/apis/")
		reply = map[string]any{"kind": kinds[r.URL.Path] + "List", "apiVersion": group, "items": items}
	default:
		resources := []any{}
		for path, kind := range kinds {
			if filepath.Dir(path) == r.URL.Path {
				resources = append(resources, map[string]any{"name": filepath.Base(path), "kind": kind, "namespaced": kind == "DaemonSet", "verbs": []string{"list"}})
			}
		}
		if len(resources) == 0 {
			w.WriteHeader(http.StatusNotFound)
			break
		}
		reply = map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": strings.TrimPrefix(r.URL.Path, "/apis/"), "resources": resources}
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// refusal renders the release dra-driver-numa in namespace dra-numa for a cluster, and returns
// why the chart refuses that, or nothing.
func refusal(t *testing.T, cluster installed, set string) string {
	t.Helper()
	program, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cluster)
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	files.Write(t, kubeconfig, `{"clusters": [{"name": "a", "cluster": {"server": "`+server.URL+`"}}], "contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}`)
	output, err := exec.CommandContext(t.Context(), program, "template", "dra-driver-numa", "../../deployments/helm/dra-driver-numa", "--namespace", "dra-numa",
		"--dry-run=server", "--disable-openapi-validation", "--kubeconfig", kubeconfig, "--set", set).CombinedOutput()
	if err == nil {
		t.Fatalf("Helm has rendered for a cluster that has no kinds:\n%s", output)
	}
	line, _, _ := strings.Cut(string(output), "\n")
	if _, said, isRefused := strings.Cut(line, "/templates/guard.yaml:"); isRefused {
		_, said, _ = strings.Cut(said, "): ")
		return said
	}
	if !strings.Contains(string(output), "no matches for kind") {
		t.Fatalf("Helm says %s", output)
	}
	return ""
}

// labelled is an object of the daemon, and of the release that a chart installed it with.
func labelled(release, namespace, more string) string {
	return `{"metadata": {"name": "a", "namespace": "` + namespace + `", "labels": {"app.kubernetes.io/part-of": "dra-driver-numa", "app.kubernetes.io/component": "daemon"},
		"annotations": {"meta.helm.sh/release-name": "` + release + `", "meta.helm.sh/release-namespace": "` + namespace + `"}}` + more + `}`
}

// running is a DaemonSet whose pods may use the kubelet's folder.
func running(scheduled string) string {
	return `, "spec": {"selector": {"matchLabels": {"app.kubernetes.io/name": "dra-driver-numa", "app.kubernetes.io/instance": "x"}},
		"template": {"spec": {"volumes": [{"name": "a"}, {"name": "registry", "hostPath": {"path": "/k/plugins_registry"}}]}}}, "status": {"updatedNumberScheduled": ` + scheduled + `}`
}

const second = "dra-driver-numa: release numa in namespace other has installed the driver in this cluster, which can have only one: upgrade that release, or uninstall it first"

func TestSecondReleaseOfAClusterIsRefused(t *testing.T) {
	const none = "rbac.create=false,ownSlicesOnly=false,deviceClasses.create=false"
	tenants := `, "spec": {"selector": {}, "template": {"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}}, "status": {"updatedNumberScheduled": 3}`
	for name, row := range map[string]struct {
		cluster   installed
		set, want string
	}{
		"the driver is not installed":  {installed{}, "", ""},
		"a role of another release":    {installed{bindings: {labelled("numa", "other", "")}}, "", second},
		"a policy of another release":  {installed{policies: {labelled("numa", "other", "")}}, "rbac.create=false", second},
		"daemons of another release":   {installed{daemonSets: {labelled("numa", "other", running("1"))}}, none, second},
		"objects of this release":      {installed{bindings: {labelled("dra-driver-numa", "dra-numa", "")}, policies: {labelled("dra-driver-numa", "dra-numa", "")}}, "", ""},
		"its name, and another's home": {installed{bindings: {labelled("dra-driver-numa", "other", "")}}, "", strings.Replace(second, "release numa", "release dra-driver-numa", 1)},
		"other objects":                {installed{bindings: {`{"metadata": {"name": "admin"}}`}, daemonSets: {`{"metadata": {"name": "proxy"}, "spec": {"template": {"spec": {}}}}`}}, "", ""},
		"a driver without Helm": {
			installed{policies: {strings.ReplaceAll(labelled("", "", ""), "meta.helm.sh/", "x/")}},
			"",
			"dra-driver-numa: ValidatingAdmissionPolicy a, which no release has made, is that of a driver in this cluster, which can have only one: delete that driver first",
		},
		// A tenant writes any label and annotation on a DaemonSet, and its pods have no folder
		// of the node: the cluster does not make those that want one.
		"a look-alike without the folder": {installed{daemonSets: {labelled("numa", "tenant", tenants)}}, none, ""},
		"a look-alike without pods":       {installed{daemonSets: {labelled("numa", "tenant", running("0"))}}, none, ""},
	} {
		if said := refusal(t, row.cluster, row.set); said != row.want {
			t.Errorf("%s: the chart says %q, want %q", name, said, row.want)
		}
	}
}

// What cannot be upgraded says what to do instead. Kubernetes would only say that a field is
// immutable.
func TestUpgradeThatWouldChangeSelectorsIsRefused(t *testing.T) {
	set := func(release, namespace string, selector map[string]string) installed {
		text, err := json.Marshal(selector)
		if err != nil {
			t.Fatal(err)
		}
		return installed{daemonSets: {`{"metadata": {"name": "dra-driver-numa", "namespace": "dra-numa", "annotations": {"meta.helm.sh/release-name": "` + release +
			`", "meta.helm.sh/release-namespace": "` + namespace + `"}}, "spec": {"selector": {"matchLabels": ` + string(text) + `}, "template": {"spec": {}}}}`}}
	}
	const old = "dra-driver-numa: release dra-driver-numa is of a chart from before the first release, which cannot be upgraded: " +
		"delete the pods that use claims of the driver, run helm uninstall dra-driver-numa --namespace dra-numa, and install this chart"
	former := map[string]string{"app.kubernetes.io/name": "dra-driver-numa"}
	renamed := maps.Clone(selector("daemon"))
	renamed["app.kubernetes.io/name"] = "numa"
	for name, row := range map[string]struct {
		cluster   installed
		set, want string
	}{
		"this chart":                     {set("dra-driver-numa", "dra-numa", selector("daemon")), "", ""},
		"an older chart":                 {set("dra-driver-numa", "dra-numa", former), "", old},
		"an older chart, with new names": {set("dra-driver-numa", "dra-numa", former), "fullnameOverride=numa,namespaceOverride=other", old},
		"an older chart of another":      {set("other", "dra-numa", former), "", ""},
		"another nameOverride": {
			set("dra-driver-numa", "dra-numa", renamed), "",
			"dra-driver-numa: nameOverride cannot change after the installation, because DaemonSet dra-driver-numa selects pods by app.kubernetes.io/name=numa: set nameOverride=numa, or uninstall the release first",
		},
		"the same nameOverride": {set("dra-driver-numa", "dra-numa", renamed), "nameOverride=numa,fullnameOverride=dra-driver-numa", ""},
	} {
		if said := refusal(t, row.cluster, row.set); said != row.want {
			t.Errorf("%s: the chart says %q, want %q", name, said, row.want)
		}
	}
}
