package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// selector is what the objects of a component select pods by, without overrides.
func selector(component string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "dra-driver-numa", "app.kubernetes.io/instance": "dra-driver-numa", "app.kubernetes.io/component": component,
	}
}

// selects reports whether the tools find a program's object by its labels.
func selects(t *testing.T, program diagnosis.Program, of map[string]string) bool {
	t.Helper()
	parsed, err := labels.Parse(program.Selector())
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(of))
}

// overrides give objects other names than the chart's, in another namespace than the
// release's.
var overrides = []string{"nameOverride=my", "fullnameOverride=my-numa", "namespaceOverride=other"}

// ofCluster are the kinds of the chart that have no namespace.
var ofCluster = []string{
	"ClusterRole", "ClusterRoleBinding", "DeviceClass", "FlowSchema", "MutatingWebhookConfiguration", "PriorityLevelConfiguration",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
}

func TestOverridesReachEveryName(t *testing.T) {
	rendered := mustRender(t, append(everything, overrides...)...)
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		if object.Kind == "DeviceClass" {
			continue
		}
		if !strings.HasPrefix(object.Name, "my-numa") {
			t.Errorf("%s %s has another name", object.Kind, object.Name)
		}
		if namespace := object.Namespace; (namespace == "") != slices.Contains(ofCluster, object.Kind) || namespace != "" && namespace != "other" {
			t.Errorf("%s %s is in namespace %q", object.Kind, object.Name, namespace)
		}
		of := object.Labels
		if of["app.kubernetes.io/name"] != "my" || of["app.kubernetes.io/instance"] != "dra-driver-numa" || of[diagnosis.PartOfLabel] != diagnosis.PartOf || of[diagnosis.ComponentLabel] == "" {
			t.Errorf("%s %s has the labels %q", object.Kind, object.Name, of)
		}
	}
	// What the driver is called wherever it is installed.
	constant := regexp.MustCompile(`^ *#|"description": |app\.kubernetes\.io/(part-of|instance): "?dra-driver-numa"?$|app\.kubernetes\.io/instance=dra-driver-numa,|helm\.sh/chart: |` +
		`[ "]localhost/dra-driver-numa:|resourceNames: \[dra-driver-numa-uninstall\]$|job=~|runbook_url: |dra-driver-numa-[a-z]+\.json: |- name: dra-driver-numa$|"uid": "dra-`)
	for line := range strings.Lines(rendered) {
		if strings.Contains(line, "dra-driver-numa") && !constant.MatchString(strings.TrimRight(line, "\n")) {
			t.Errorf("the chart's own name is in %q", line)
		}
	}
}

// Flux adds the digest of a chart that it reads from a registry to the version.
func TestVersionWithBuildMetadataIsALabel(t *testing.T) {
	chart := t.TempDir()
	if err := os.CopyFS(chart, os.DirFS("../../deployments/helm/dra-driver-numa")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(chart, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^version: .*$`).ReplaceAll(text, []byte("version: 0.1.0+4fda46fd8c4e"))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, stderr, err := templateAt(t, "numa", chart)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		for name, value := range object.Labels {
			if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
				t.Errorf("%s %s: label %s: %s", object.Kind, object.Name, name, faults)
			}
		}
	}
	if want := "helm.sh/chart: dra-driver-numa-0.1.0_4fda46fd8c4e\n"; !strings.Contains(rendered, want) {
		t.Errorf("no object has %q", want)
	}
}

// Names are as those of other charts, and fit with everything that follows.
func TestNamesComeFromTheRelease(t *testing.T) {
	long := strings.Repeat("a", 53)
	for _, row := range []struct{ release, set, want string }{
		{"dra-driver-numa", "", "dra-driver-numa"},
		{"numa", "", "numa-dra-driver-numa"},
		{"my-dra-driver-numa", "", "my-dra-driver-numa"},
		{"numa", "nameOverride=driver", "numa-driver"},
		{"numa-driver", "nameOverride=driver", "numa-driver"},
		{"numa", "fullnameOverride=cpus", "cpus"},
		{"numa.test", "", "numa-test-dra-driver-numa"},
		{long, "", long[:47]},
		{strings.Repeat("a", 46), "", strings.Repeat("a", 46)},
	} {
		rendered, stderr, err := templateOf(t, row.release, "--set", strings.Join(append(everything, row.set), ","))
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", row.release, row.set, err, stderr)
		}
		for _, suffix := range []string{"-webhook", "-webhook-renewer", "-templates"} {
			_ = named[appsv1.Deployment](t, rendered, "Deployment", row.want+suffix)
		}
		for _, document := range documents(rendered) {
			object := decode[metav1.PartialObjectMetadata](t, document)
			for _, value := range append([]string{object.Name}, object.Labels["app.kubernetes.io/name"], object.Labels["app.kubernetes.io/instance"]) {
				if len(value) > 63 {
					t.Errorf("%s %s: %q has %d characters", object.Kind, object.Name, value, len(value))
				}
			}
		}
	}
}

// An object that selects pods selects those of its component, and no others.
func TestSelectorsAreOfOneComponent(t *testing.T) {
	set := append(everything, overrides...)
	templates := pods(t, set...)
	selecting := 0
	for _, document := range documents(mustRender(t, set...)) {
		object := decode[struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				Selector    map[string]any
				PodSelector map[string]any
			}
		}](t, document)
		by := object.Spec.Selector
		if by == nil {
			by = object.Spec.PodSelector
		}
		if match, ok := by["matchLabels"].(map[string]any); ok {
			by = match
		}
		if len(by) == 0 {
			continue
		}
		selecting++
		want := labels.Set{}
		for label, value := range by {
			want[label] = fmt.Sprint(value)
		}
		var found []string
		for name, pod := range templates {
			if want.AsSelector().Matches(labels.Set(pod.Labels)) {
				found = append(found, name)
			}
		}
		if len(want) != 3 || len(found) != 1 {
			t.Errorf("%s %s selects %v: the pods of %q", object.Kind, object.Name, want, found)
		}
	}
	if selecting < 8 {
		t.Errorf("only %d objects select pods", selecting)
	}
}

// TestToolsFindObjectsWithAnyName holds the chart to the labels by which kubectl numa finds
// what is installed.
func TestToolsFindObjectsWithAnyName(t *testing.T) {
	rendered := mustRender(t, append(everything, overrides...)...)
	found := map[diagnosis.Program][]string{}
	var installed diagnosis.Installation
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		for _, program := range []diagnosis.Program{diagnosis.Daemon, diagnosis.Webhook, diagnosis.Renewer, diagnosis.Templates} {
			if selects(t, program, object.Labels) && slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Deployment"}, object.Kind) {
				found[program] = append(found[program], object.Kind+" "+object.Name)
			}
		}
	}
	want := map[diagnosis.Program][]string{
		diagnosis.Daemon:    {"ClusterRole my-numa", "ClusterRoleBinding my-numa", "ConfigMap my-numa", "DaemonSet my-numa"},
		diagnosis.Webhook:   {"ClusterRole my-numa-webhook", "ClusterRoleBinding my-numa-webhook", "Deployment my-numa-webhook"},
		diagnosis.Renewer:   {"ClusterRole my-numa-webhook-renewer", "ClusterRoleBinding my-numa-webhook-renewer", "Deployment my-numa-webhook-renewer"},
		diagnosis.Templates: {"ClusterRole my-numa-templates", "ClusterRoleBinding my-numa-templates", "Deployment my-numa-templates"},
	}
	for program := range found {
		slices.Sort(found[program])
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("objects (-want +found):\n%s", diff)
	}
	binding := named[rbacv1.ClusterRoleBinding](t, rendered, "ClusterRoleBinding", "my-numa")
	installed.Bindings = []*rbacv1.ClusterRoleBinding{&binding}
	if err := installed.Locate(""); err != nil || installed.Namespace != "other" {
		t.Errorf("the namespace is %q, error %v", installed.Namespace, err)
	}
}

func TestDaemonHasTheServiceAccountOfTheValues(t *testing.T) {
	for _, row := range []struct {
		set        []string
		name       string
		isMade     bool
		annotation string
	}{
		{nil, "dra-driver-numa", true, ""},
		{[]string{"serviceAccount.name=numa", "serviceAccount.annotations.a=b"}, "numa", true, "b"},
		{[]string{"serviceAccount.create=false", "serviceAccount.name=numa"}, "numa", false, ""},
	} {
		rendered := mustRender(t, append(row.set, "flowControl.enabled=true", "webhook.enabled=true")...)
		if name := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa").Spec.Template.Spec.ServiceAccountName; name != row.name {
			t.Errorf("%q: the daemon has the account %s", row.set, name)
		}
		if subject := named[rbacv1.ClusterRoleBinding](t, rendered, "ClusterRoleBinding", "dra-driver-numa").Subjects[0]; subject.Name != row.name {
			t.Errorf("%q: the rights are those of %s", row.set, subject.Name)
		}
		for _, text := range []string{"system:serviceaccount:dra-numa:" + row.name + `"`, "serviceAccount:\n            name: " + row.name + "\n"} {
			if !strings.Contains(rendered, text) {
				t.Errorf("%q: neither policy nor FlowSchema has %q", row.set, text)
			}
		}
		if isMade := strings.Contains(rendered, "kind: ServiceAccount\nmetadata:\n  name: "+row.name+"\n"); isMade != row.isMade {
			t.Errorf("%q: account %s is made: %t", row.set, row.name, isMade)
		}
		if row.isMade {
			if got := named[corev1.ServiceAccount](t, rendered, "ServiceAccount", row.name).Annotations["a"]; got != row.annotation {
				t.Errorf("%q: annotation %q", row.set, got)
			}
		}
	}
	if _, stderr, err := render(t, "serviceAccount.create=false"); err == nil || !strings.Contains(stderr, "serviceAccount.create=false needs serviceAccount.name") {
		t.Errorf("without a name: %v, %s", err, stderr)
	}
}

func TestRolesAndClassesCanBeLeftOut(t *testing.T) {
	kinds := func(set ...string) map[string]int {
		found := map[string]int{}
		for _, document := range documents(mustRender(t, append(everything, set...)...)) {
			found[decode[metav1.TypeMeta](t, document).Kind]++
		}
		return found
	}
	all, without := kinds(), kinds("rbac.create=false", "deviceClasses.create=false")
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "DeviceClass"} {
		if all[kind] == 0 || without[kind] != 0 {
			t.Errorf("%s: %d with, %d without", kind, all[kind], without[kind])
		}
		delete(all, kind)
	}
	if diff := cmp.Diff(all, without); diff != "" {
		t.Errorf("other objects (-with +without):\n%s", diff)
	}
}

// A parent chart hands its globals down to all its charts.
func TestGlobalsOfAParentAreUsed(t *testing.T) {
	for repository, want := range map[string]string{
		"localhost/numa": "mirror.example/all/numa:v1", "registry.example:5000/team/numa": "mirror.example/all/team/numa:v1",
		"team/numa": "mirror.example/all/team/numa:v1", "numa": "mirror.example/all/numa:v1",
	} {
		found := pods(t, append(everything, "image.repository="+repository, "image.tag=v1", "nvml.image=nvcr.io/nvidia/cuda:13", "global.imageRegistry=mirror.example/all/",
			"global.imagePullSecrets={mirror,own}", "global.storageClass=fast", "imagePullSecrets[0].name=own")...)
		for name, pod := range found {
			if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "own"}, {Name: "mirror"}}, pod.Spec.ImagePullSecrets); diff != "" {
				t.Errorf("%s: secrets (-want +got):\n%s", name, diff)
			}
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if container.Image != want && container.Image != "mirror.example/all/nvidia/cuda:13" {
					t.Errorf("%s of %s: container %s of %s has the image %s", repository, want, container.Name, name, container.Image)
				}
			}
		}
	}
}

// What is added is the daemon's: other containers of its pods have more rights.
func TestMoreArgumentsAndMountsAreTheDaemons(t *testing.T) {
	pod := object[appsv1.DaemonSet](t, mustRender(t, "extraArgs={--listen=:9}", "extraEnv[0].name=GOGC", "extraEnv[0].value=a",
		"extraVolumes[0].name=more", "extraVolumes[0].hostPath.path=/data", "extraVolumeMounts[0].name=more", "extraVolumeMounts[0].mountPath=/more"), "DaemonSet").Spec.Template.Spec
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		isDriver := container.Name == diagnosis.DriverContainer
		last := ""
		if len(container.Args) > 0 {
			last = container.Args[len(container.Args)-1]
		}
		hasEnv := slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "GOGC" && e.Value == "a" })
		if hasMount := slices.Contains(mounts(pod, container), "/data at /more"); (last == "--listen=:9") != isDriver || hasEnv != isDriver || hasMount != isDriver {
			t.Errorf("container %s: arguments %q, variables %v, mounts %q", container.Name, container.Args, container.Env, mounts(pod, container))
		}
	}
}

// Daemon, probe and cleaner agree on the folders of the node, which have the same path in
// containers: the runtime runs the hook on the host.
func TestFoldersOfTheNodeAreThoseOfTheValues(t *testing.T) {
	rendered := mustRender(t, "cdi.dynamicDir=/run/cdi", "cdi.staticDir=/usr/cdi", "hook.dir=/opt/hook", "config.devices.presets={nvme}")
	pod := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa").Spec.Template.Spec
	cleaner := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa-uninstall-node").Spec.Template.Spec
	if strings.Contains(rendered, "/var/run/cdi") || strings.Contains(rendered, "/etc/cdi") || strings.Contains(rendered, "numa-hook") {
		t.Error("a folder of the defaults is in the chart")
	}
	for _, row := range []struct {
		pod       corev1.PodSpec
		container corev1.Container
		mounts    []string
		args      []string
	}{
		{pod, pod.InitContainers[0], []string{"/run/cdi at /run/cdi read-only", "/opt/hook at /opt/hook"}, nil},
		{pod, pod.Containers[0], []string{"/run/cdi at /run/cdi", "/opt/hook at /opt/hook read-only", "/usr/cdi at /usr/cdi read-only"}, []string{"--static-cdi-dir=/usr/cdi"}},
		{cleaner, cleaner.Containers[0], []string{"/run/cdi at /run/cdi", "/opt/hook at /opt/hook"}, nil},
	} {
		for _, mount := range row.mounts {
			if got := mounts(row.pod, row.container); !slices.Contains(got, mount) {
				t.Errorf("%s mounts %q, want %s", row.container.Name, got, mount)
			}
		}
		for _, arg := range append(row.args, "--cdi-dir=/run/cdi", "--hook-dir=/opt/hook") {
			if !slices.Contains(row.container.Args, arg) {
				t.Errorf("%s has the arguments %q, want %s", row.container.Name, row.container.Args, arg)
			}
		}
	}
}
