package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const (
	chartFolder = "../../deployments/helm/dra-driver-numa"
	valuesFile  = chartFolder + "/values.yaml"
)

// value is one of values.yaml.
type value struct {
	path, meaning string
	initial       string // as JSON; "" for a value that has others below it
}

// values reads values.yaml with its comments. A comment belongs to the line after it.
func values(t *testing.T) (all []value) {
	t.Helper()
	tree := decode[map[string]any](t, files.Read(t, valuesFile))
	var path, comment []string
	for line := range strings.Lines(files.Read(t, valuesFile)) {
		text := strings.TrimSpace(line)
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		switch key, _, isKey := strings.Cut(text, ":"); {
		case strings.HasPrefix(text, "# "):
			comment = append(comment, strings.TrimPrefix(text, "# "))
			continue
		case isKey && !strings.HasPrefix(text, "- "):
			path = append(path[:min(depth, len(path))], key)
			all = append(all, value{strings.Join(path, "."), strings.Join(comment, " "), initial(t, tree, path)})
		}
		comment = nil
	}
	return all
}

// initial returns a value as JSON, and "" for a value that only holds others.
func initial(t *testing.T, tree map[string]any, path []string) string {
	t.Helper()
	var at any = tree
	for _, key := range path {
		at = at.(map[string]any)[key]
	}
	if below, ok := at.(map[string]any); ok && len(below) > 0 {
		return ""
	}
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// isFree is whether the keys below a value are the user's, as of labels.
func isFree(path string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	return slices.Contains([]string{"nodeSelector", "labels", "requests", "limits"}, last)
}

// The page and the chart's own README, which comes with the package, have the same table.
func TestValuesAreDocumented(t *testing.T) {
	const head, end = "| value | default | meaning |\n|---|---|---|\n", "\n<!-- end of values -->\n"
	var table strings.Builder
	free := ""
	for _, v := range values(t) {
		if free != "" && strings.HasPrefix(v.path, free) {
			continue
		}
		if free = ""; isFree(v.path) {
			free = v.path + "."
			tree := decode[map[string]any](t, files.Read(t, valuesFile))
			var at any = tree
			for key := range strings.SplitSeq(v.path, ".") {
				at = at.(map[string]any)[key]
			}
			text, err := json.Marshal(at)
			if err != nil {
				t.Fatal(err)
			}
			v.initial = string(text)
		}
		initial := v.initial
		if initial != "" {
			initial = "`" + initial + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.path, initial, strings.ReplaceAll(v.meaning, "|", "\\|"))
	}
	for _, path := range []string{"../../docs/chart.md", chartFolder + "/README.md"} {
		before, rest, begins := strings.Cut(files.Read(t, path), head)
		_, after, ends := strings.Cut(rest, end)
		if !begins || !ends {
			t.Fatalf("%s lacks the head or the end of the table", path)
		}
		files.Golden(t, path, before+head+table.String()+end+after)
	}
}

// renderFile renders the chart with the values of a file, and returns what the schema says
// against them, by path.
func renderFile(t *testing.T, values any) map[string]string {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), program, "template", "dra-driver-numa", "../../deployments/helm/dra-driver-numa", "--values", file).CombinedOutput()
	if err == nil {
		t.Fatalf("the chart takes %s", text)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		at, text, ok := strings.Cut(strings.TrimSpace(line), "': ")
		if at, isOne := strings.CutPrefix(at, "- at '"); ok && isOne {
			found[strings.ReplaceAll(strings.TrimPrefix(at, "/"), "/", ".")] = strings.TrimSpace(text)
		}
	}
	return found
}

// set puts a value into nested maps.
func set(tree map[string]any, path string, v any) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		if tree[key] == nil {
			tree[key] = map[string]any{}
		}
		tree = tree[key].(map[string]any)
	}
	tree[keys[len(keys)-1]] = v
}

// Each value of another type is an error that names the value, and so is a name that is
// not a value.
func TestEveryValueIsChecked(t *testing.T) {
	wrong, unknown := map[string]any{}, map[string]any{"unknown": true}
	var typed, groups []string
	for _, v := range values(t) {
		switch {
		case strings.ContainsAny(v.path, "/\"") || isFree(v.path[:max(0, strings.LastIndexByte(v.path, '.'))]):
		case v.path == "global": // other charts have values below it, too
		case v.initial == "" && !isFree(v.path):
			groups = append(groups, v.path)
			set(unknown, v.path+".unknown", true)
		case strings.HasPrefix(v.initial, "{") || v.initial == "":
			typed = append(typed, v.path)
			set(wrong, v.path, "text")
		default:
			typed = append(typed, v.path)
			set(wrong, v.path, map[string]any{"a": 1})
		}
	}
	if len(typed) < 70 || len(groups) < 15 {
		t.Fatalf("%d values and %d groups of values", len(typed), len(groups))
	}
	found := renderFile(t, wrong)
	for _, path := range typed {
		if found[path] == "" {
			t.Errorf("%s of a wrong type is no error", path)
		}
	}
	found = renderFile(t, unknown)
	for _, path := range append(groups, "") {
		if want := "additional properties 'unknown' not allowed"; found[path] != want {
			t.Errorf("an unknown value below %q: %q, want %q", path, found[path], want)
		}
	}
}

// everything turns on all objects of the chart.
var everything = []string{
	"webhook.enabled=true", "webhook.mirrorRequests=enforce", "webhook.translate.enabled=true", "webhook.networkPolicy.enabled=true", "viewer.enabled=true", "nvml.enabled=true", "nvml.image=cuda",
	"metrics.networkPolicy.enabled=true", "metrics.podMonitor.enabled=true", "metrics.prometheusRule.enabled=true", "metrics.dashboards.enabled=true", "flowControl.enabled=true", "madeUpMachine=rig", "config.zoneBy=l3",
	"rbac.scc=true", "resourceQuota.create=true",
}

// pods returns the pods and pod templates of a rendered chart by object.
func pods(t *testing.T, set ...string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	found := map[string]corev1.PodTemplateSpec{}
	for _, document := range documents(mustRender(t, set...)) {
		if decode[metav1.TypeMeta](t, document).Kind == "Pod" {
			pod := decode[corev1.Pod](t, document)
			found["Pod "+pod.Name] = corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
			continue
		}
		object := decode[struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct{ Template *corev1.PodTemplateSpec }
		}](t, document)
		if object.Spec.Template != nil {
			found[object.Kind+" "+object.Name] = *object.Spec.Template
		}
	}
	return found
}

func TestEveryPodPullsItsImagesWithTheSecretsAndByDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	found := pods(t, append(everything, "imagePullSecrets[0].name=registry", "image.digest="+digest, "image.tag=v1", "image.repository=example.com/numa",
		"config.cache.os.ways=1", "config.cache.guaranteed.ways=4", "cache.mount=true")...)
	if len(found) < 4 {
		t.Fatalf("pods of %q", slices.Sorted(maps.Keys(found)))
	}
	for name, pod := range found {
		if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "registry"}}, pod.Spec.ImagePullSecrets); diff != "" {
			t.Errorf("%s: secrets (-want +got):\n%s", name, diff)
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if container.Image != "example.com/numa@"+digest && container.Image != "cuda" {
				t.Errorf("%s: container %s has the image %s", name, container.Name, container.Image)
			}
		}
	}
}

func TestEveryPodHasAPriorityClassOfItsOwn(t *testing.T) {
	for name, pod := range pods(t, append(everything, "priorityClassName=daemon", "nvml.priorityClassName=nvml", "webhook.priorityClassName=webhook", "hooks.priorityClassName=hook")...) {
		want := "hook"
		switch name {
		case "DaemonSet dra-driver-numa", "DaemonSet dra-driver-numa-uninstall-node":
			want = "daemon"
		case "DaemonSet dra-driver-numa-nvml":
			want = "nvml"
		case "Deployment dra-driver-numa-webhook", "Deployment dra-driver-numa-webhook-renewer", "Deployment dra-driver-numa-templates":
			want = "webhook"
		}
		if pod.Spec.PriorityClassName != want {
			t.Errorf("%s has the priority class %q, want %q", name, pod.Spec.PriorityClassName, want)
		}
	}
}

// Labels that objects are selected by stay as they are.
func TestEveryObjectHasTheCommonLabelsAndAnnotations(t *testing.T) {
	rendered := mustRender(t, append(everything, "commonLabels.team=numa", `commonAnnotations.example\.com/owner=us`)...)
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		if object.Kind == "DeviceClass" {
			continue
		}
		if object.Labels["team"] != "numa" || object.Annotations["example.com/owner"] != "us" || object.Labels["app.kubernetes.io/name"] == "" {
			t.Errorf("%s %s has the labels %q and annotations %q", object.Kind, object.Name, object.Labels, object.Annotations)
		}
	}
	for name, pod := range pods(t, append(everything, "commonLabels.team=numa", "podLabels.a=b", "podAnnotations.c=d", "nvml.podLabels.a=b", "nvml.podAnnotations.c=d",
		"webhook.podLabels.a=b", "webhook.podAnnotations.c=d", "hooks.podLabels.a=b", "hooks.podAnnotations.c=d")...) {
		if pod.Labels["team"] != "numa" || pod.Labels["a"] != "b" || pod.Annotations["c"] != "d" {
			t.Errorf("pods of %s have the labels %q and annotations %q", name, pod.Labels, pod.Annotations)
		}
	}
	for name, component := range map[string]string{"dra-driver-numa": "daemon", "dra-driver-numa-nvml": "nvml"} {
		daemons := named[appsv1.DaemonSet](t, rendered, "DaemonSet", name)
		if want := selector(component); !maps.Equal(daemons.Spec.Selector.MatchLabels, want) {
			t.Errorf("%s selects %q, which an upgrade cannot change", name, daemons.Spec.Selector.MatchLabels)
		}
	}
}

// Two values may have the same label. A key that is there twice is not valid YAML, which Helm's
// own parser hides. The label of the value that is for fewer objects counts.
func TestLabelOfTwoValuesIsThereOnce(t *testing.T) {
	set := append(everything, "commonLabels.team=all", "commonAnnotations.owner=all")
	for _, value := range []string{"pod", "nvml.pod", "webhook.pod", "hooks.pod"} {
		set = append(set, value+"Labels.team=few", value+"Annotations.owner=few")
	}
	for _, value := range []string{"podMonitor", "prometheusRule", "dashboards"} {
		set = append(set, "metrics."+value+".labels.team=few")
	}
	set = append(set, "metrics.dashboards.annotations.owner=few", "serviceAccount.annotations.owner=few")
	for _, document := range documents(mustRender(t, set...)) {
		var object metav1.PartialObjectMetadata
		if err := yaml.UnmarshalStrict([]byte(document), new(map[string]any)); err != nil {
			t.Errorf("%v in:\n%s", err, document)
		} else if object = decode[metav1.PartialObjectMetadata](t, document); object.Labels[diagnosis.ComponentLabel] == "monitoring" && object.Labels["team"] != "few" {
			t.Errorf("%s %s has the labels %q", object.Kind, object.Name, object.Labels)
		}
	}
	for name, pod := range pods(t, set...) {
		if pod.Labels["team"] != "few" || pod.Annotations["owner"] != "few" {
			t.Errorf("pods of %s have the labels %q and annotations %q", name, pod.Labels, pod.Annotations)
		}
	}
}

func TestWebhookRunsWhereTheValuesSay(t *testing.T) {
	find := func(set ...string) corev1.PodSpec {
		return named[appsv1.Deployment](t, mustRender(t, append(set, "webhook.enabled=true")...), "Deployment", webhookName).Spec.Template.Spec
	}
	own := &metav1.LabelSelector{MatchLabels: selector("webhook")}
	host := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own}
	if pod := find(); !cmp.Equal(pod.TopologySpreadConstraints, []corev1.TopologySpreadConstraint{host}) || pod.NodeSelector["kubernetes.io/os"] != "linux" {
		t.Errorf("by default %+v", pod)
	}
	pod := find("webhook.nodeSelector.role=control", "webhook.tolerations[0].operator=Exists",
		"webhook.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=a",
		"webhook.topologySpreadConstraints[0].maxSkew=2", "webhook.topologySpreadConstraints[0].topologyKey=zone", "webhook.topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
		"webhook.topologySpreadConstraints[1].maxSkew=1", "webhook.topologySpreadConstraints[1].topologyKey=rack", "webhook.topologySpreadConstraints[1].whenUnsatisfiable=DoNotSchedule",
		"webhook.topologySpreadConstraints[1].labelSelector.matchLabels.a=b")
	want := []corev1.TopologySpreadConstraint{
		{MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own},
		{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
	}
	if pod.NodeSelector["role"] != "control" || len(pod.Tolerations) != 1 || pod.Affinity == nil || pod.Affinity.NodeAffinity == nil {
		t.Errorf("%+v", pod)
	}
	if diff := cmp.Diff(want[0], pod.TopologySpreadConstraints[0]); diff != "" {
		t.Errorf("constraint (-want +got):\n%s", diff)
	}
	if got := pod.TopologySpreadConstraints[1]; got.LabelSelector.MatchLabels["a"] != "b" {
		t.Errorf("constraint %+v", got)
	}
	if rendered := mustRender(t, "webhook.enabled=true", "webhook.podDisruptionBudget.enabled=false"); strings.Contains(rendered, "PodDisruptionBudget") {
		t.Error("there is a budget that is off")
	}
}

// The daemons have a share of the API server to themselves: no request of theirs goes to
// another level, and no request of others to theirs.
func TestFlowSchemaIsForTheDaemons(t *testing.T) {
	if rendered := mustRender(t); strings.Contains(rendered, "flowcontrol") {
		t.Error("by default there is a priority level")
	}
	rendered := mustRender(t, "flowControl.enabled=true", "flowControl.nominalConcurrencyShares=7", "flowControl.queueLengthLimit=9", "flowControl.matchingPrecedence=11")
	schema := object[flowcontrol.FlowSchema](t, rendered, "FlowSchema")
	level := object[flowcontrol.PriorityLevelConfiguration](t, rendered, "PriorityLevelConfiguration")
	rule := schema.Spec.Rules[0]
	if schema.Spec.PriorityLevelConfiguration.Name != level.Name || schema.Spec.MatchingPrecedence != 11 || len(schema.Spec.Rules) != 1 || len(rule.Subjects) != 1 {
		t.Fatalf("%+v", schema.Spec)
	}
	if who := rule.Subjects[0].ServiceAccount; who == nil || who.Name != "dra-driver-numa" || who.Namespace != "dra-numa" {
		t.Errorf("it is for %+v", rule.Subjects[0])
	}
	if limited := level.Spec.Limited; limited == nil || *limited.NominalConcurrencyShares != 7 || limited.LimitResponse.Queuing.QueueLengthLimit != 9 ||
		limited.LimitResponse.Queuing.HandSize > limited.LimitResponse.Queuing.Queues {
		t.Errorf("%+v", limited)
	}
}

// permissions returns what the roles of a name permit: verbs by group and resource.
func permissions(t *testing.T, rendered, name string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, document := range documents(rendered) {
		role := decode[rbacv1.ClusterRole](t, document)
		if role.Name != name || !strings.HasSuffix(role.Kind, "Role") {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				right, rights := role.Kind+" "+rule.APIGroups[0]+"/"+resource, strings.Join(append(rule.Verbs, rule.ResourceNames...), " ")
				got[right] = strings.TrimPrefix(got[right]+", "+rights, ", ")
			}
		}
	}
	return got
}

// checkHook checks that a pod of a hook has no rights on its node, is not one of the daemon's
// pods, and that its rights in the cluster are these, and are gone after the hook.
func checkHook(t *testing.T, rendered, hook string, pod corev1.PodTemplateSpec, rights map[string]string) {
	t.Helper()
	account := pod.Spec.ServiceAccountName
	for _, container := range pod.Spec.Containers {
		if !*pod.Spec.SecurityContext.RunAsNonRoot || len(container.VolumeMounts) > 0 || len(container.SecurityContext.Capabilities.Add) > 0 {
			t.Errorf("container %+v", container)
		}
	}
	daemons := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa")
	if labels.SelectorFromSet(daemons.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
		t.Error("the DaemonSet selects the pod of the hook")
	}
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		if object.Name == account && (object.Annotations["helm.sh/hook"] != hook || !strings.Contains(object.Annotations["helm.sh/hook-delete-policy"], "hook-succeeded")) {
			t.Errorf("%s %s stays after the hook: annotations %q", object.Kind, object.Name, object.Annotations)
		}
	}
	if diff := cmp.Diff(rights, permissions(t, rendered, account)); diff != "" {
		t.Errorf("permissions (-used +granted):\n%s", diff)
	}
}

func TestTestOfHelmReadsPodsAndSlices(t *testing.T) {
	rendered := mustRender(t)
	pod := named[corev1.Pod](t, rendered, "Pod", "dra-driver-numa-test")
	checkHook(t, rendered, "test", corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, map[string]string{
		"ClusterRole resource.k8s.io/resourceslices": "list", "Role /pods": "list",
	})
	want := []string{"test-release", "--namespace=dra-numa", "--selector=" + labels.SelectorFromSet(selector("daemon")).String()}
	if args := pod.Spec.Containers[0].Args; !slices.Equal(args, want) {
		t.Errorf("arguments %q", args)
	}
}

// What refuses and what finishes has no right on a node, and what cleans a node may only
// ask whether the driver is installed.
func TestUninstallHasTheRightsOfItsCommands(t *testing.T) {
	rendered := mustRender(t)
	check := named[batchv1.Job](t, rendered, "Job", "dra-driver-numa-uninstall-check").Spec
	checkHook(t, rendered, "pre-delete", check.Template, map[string]string{
		"ClusterRole resource.k8s.io/resourceclaims": "list", "ClusterRole resource.k8s.io/devicetaintrules": "create, delete dra-driver-numa-uninstall",
		"Role apps/daemonsets": "get dra-driver-numa",
	})
	finish := named[batchv1.Job](t, rendered, "Job", "dra-driver-numa-uninstall").Spec
	checkHook(t, rendered, "post-delete", finish.Template, map[string]string{
		"ClusterRole resource.k8s.io/resourceslices": "list delete", "ClusterRole resource.k8s.io/devicetaintrules": "delete dra-driver-numa-uninstall",
		"Role /pods": "list", "Role /pods/log": "get",
		"Role apps/daemonsets": "get dra-driver-numa dra-driver-numa-uninstall-node",
	})
	if got := permissions(t, rendered, "dra-driver-numa-uninstall-node"); !maps.Equal(got, map[string]string{"Role apps/daemonsets": "get dra-driver-numa"}) {
		t.Errorf("the cleaner may %q", got)
	}
	for _, spec := range []batchv1.JobSpec{check, finish} {
		if *spec.BackoffLimit != 0 {
			t.Error("a refusal is tried again, and helm waits")
		}
	}
	if args := check.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{"uninstall", "check", "--namespace=dra-numa", "--daemonset=dra-driver-numa", "--timeout=0s"}) {
		t.Errorf("arguments %q", args)
	}
	cleaner := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa-uninstall-node")
	args := finish.Template.Spec.Containers[0].Args
	for _, want := range []string{"--daemonset=dra-driver-numa", "--cleaner=" + cleaner.Name, "--selector=" + metav1.FormatLabelSelector(cleaner.Spec.Selector)} {
		if !slices.Contains(args, want) {
			t.Errorf("arguments %q, want %s", args, want)
		}
	}
	if rendered := mustRender(t, "uninstall.enabled=false"); strings.Contains(rendered, "uninstall") {
		t.Error("there are hooks that are off")
	}
}

// The cleaner runs wherever the daemon may have run, and has the folders above those that it
// removes.
func TestCleanerRunsWhereTheDaemonDoes(t *testing.T) {
	const cache = "config.cache.os.ways=1,config.cache.guaranteed.ways=4"
	rendered := mustRender(t, cache, "config.performance.default.governor=powersave", "nvml.enabled=true,nvml.image=x", "nodeSelector.numa=yes", "kubelet.root=/k")
	daemon := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa").Spec.Template.Spec
	cleaner := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa-uninstall-node").Spec.Template.Spec
	if !cmp.Equal(daemon.NodeSelector, cleaner.NodeSelector) || !cmp.Equal(daemon.Tolerations, cleaner.Tolerations) || !cmp.Equal(daemon.Affinity, cleaner.Affinity) {
		t.Errorf("the cleaner is elsewhere: %+v", cleaner)
	}
	want := []string{
		"/k/plugins at /k/plugins", "/k/plugins_registry at /k/plugins_registry", "/proc/irq at /host/performance/proc/irq", "/run/dra-numa at /run/dra-numa",
		"/sys/devices/system/cpu at /host/performance/sys/devices/system/cpu", "/sys/devices/virtual/workqueue at /host/workqueue", "/sys/fs at /host/fs HostToContainer", "/sys/fs/cgroup at /host/cgroup", "/sys/fs/cgroup at /host/fs/cgroup read-only", "/var/run/cdi at /var/run/cdi",
	}
	if diff := cmp.Diff(want, mounts(cleaner, cleaner.Containers[0])); diff != "" {
		t.Errorf("host paths (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/k/plugins/dra.numa", "/k/plugins/dra.numa-hook"} {
		if !strings.HasPrefix(path, cleaner.Containers[0].VolumeMounts[0].MountPath+"/") {
			t.Errorf("the cleaner cannot remove %s", path)
		}
	}
}

// The condition of a dependency is a value of the chart, by the convention of Helm.
func TestParentChartSwitchesTheDriverOff(t *testing.T) {
	parent := t.TempDir()
	if err := os.CopyFS(filepath.Join(parent, "charts/dra-driver-numa"), os.DirFS(chartFolder)); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(parent, "Chart.yaml"), `{apiVersion: v2, name: parent, version: 1.0.0,
  dependencies: [{name: dra-driver-numa, version: "*", condition: dra-driver-numa.enabled}]}`)
	for set, want := range map[string]bool{"global.a=b": true, "dra-driver-numa.enabled=true": true, "dra-driver-numa.enabled=false": false} {
		rendered, stderr, err := templateAt(t, "numa", parent, "--set", set)
		if got := strings.Contains(rendered, "kind: DaemonSet"); err != nil || got != want {
			t.Errorf("%s: the driver is installed: %t, error %v, want %t\n%s", set, got, err, want, stderr)
		}
	}
}
