package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// Users of kubectl numa.
const (
	viewer     = "numa-viewer"     // has the chart's roles for viewers, and nothing else
	tenantUser = "numa-tenant"     // may edit namespace viewer-team, and nothing else
	team       = "viewer-team"     // the namespace of the tenant
	viewed     = "viewer-worker-1" // the node
)

// says is what a command prints and returns.
type says struct {
	exitCode int
	parts    []string // of stdout and stderr together; * stands for anything in a line
}

// forbidden is what the API server says to the tenant. It is the end of the command's
// one line.
func forbidden(kind, resource, group string) says {
	return says{2, []string{"error: read the cluster: list " + kind + ": " + resource + ` is forbidden: User "` + tenantUser + `" cannot list resource "` + resource + `" in API group "` + group + `" at the cluster scope`}}
}

// isBeingDeleted reports whether a namespace is, with all that is in it.
func isBeingDeleted(t *testing.T, admin kubernetes.Interface) bool {
	t.Helper()
	namespaces, err := admin.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(namespaces.Items, func(n corev1.Namespace) bool { return n.DeletionTimestamp != nil })
}

// TestEveryCommandForEveryUser shows a real API server with RBAC what rights_test of
// cmd/kubectl-numa compares: each command answers what its user may see, and names what
// not.
func TestEveryCommandForEveryUser(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t, "viewer.enabled=true")
	eventually(t, "what other tests made is gone", func() bool { return !isBeingDeleted(t, admin) })
	viewedCluster(t, admin)
	program := buildCLI(t)
	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	files.Write(t, manifest, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}]}\n")
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	const (
		unseen  = "there may be more obstacles, because you may not list: Nodes, DeviceClasses, ResourceSlices, DeviceTaintRules, ResourceClaims, ResourceClaimTemplates and Pods of other namespaces than " + team
		unknown = "it is not known on which nodes it fits, because you may not list Nodes, DeviceClasses, ResourceSlices"
		noExec  = `cannot get resource "pods/exec" in API group "" in the namespace "dra-numa"`
		noProxy = `cannot get resource "nodes/proxy" in API group "" at the cluster scope`
	)
	gates := "note: using the feature gates of Kubernetes " + releaseOf(t, admin) +
		`, because those of the cluster cannot be read; set --feature-gates if they differ: get /metrics: forbidden: User "` + tenantUser + `" cannot get path "/metrics"`
	nodes := forbidden("Nodes", "nodes", "")
	noNode := says{2, []string{"error: read the state of " + viewed + ": run dra-numa state in pod dra-numa/dra-driver-numa-"}}
	// By command line: the answers to the administrator, the viewer and the tenant.
	rows := map[string][3]says{
		"version": {
			{0, []string{"kube-apiserver", "chart in dra-numa", "dra-driver-numa "}},
			{0, []string{"kube-apiserver", "chart in dra-numa", "dra-driver-numa "}},
			{0, []string{"kube-apiserver", `the answer lacks the ClusterRoleBindings of dra-driver-numa: clusterrolebindings*is forbidden`, "the answer lacks the Nodes of kubelet: nodes is forbidden"}},
		},
		"features": {
			{0, []string{"FEATURE"}},
			{0, []string{"FEATURE", "the configz of kubelet cannot be read: *" + noProxy}},
			nodes,
		},
		"simulate":                           {{1, []string{team + "/large has no node"}}, {1, []string{team + "/large has no node"}}, nodes},
		"status":                             {{0, []string{viewed, "waits has no node"}}, {0, []string{viewed, "waits has no node"}}, nodes},
		"taint " + viewed + "/numa-0":        {{0, []string{"kind: DeviceTaintRule"}}, {0, []string{"kind: DeviceTaintRule"}}, nodes},
		"lint --from-cluster -f " + manifest: {{0, nil}, {0, nil}, nodes},
		"translate":                          {{0, []string{"cannot be translated: 0 pods"}}, {0, []string{"cannot be translated: 0 pods"}}, nodes},
		"migrate": {
			{2, []string{"error: the plan lacks the configuration of * kubelets: " + viewed + ": "}},
			{2, []string{"error: the plan lacks the configuration of * kubelets: *" + noProxy}},
			nodes,
		},
		"validate": {
			{1, []string{"not-checked*configz"}},
			{0, []string{"not-permitted*configz*" + noProxy}},
			nodes,
		},
		"drift": {
			noNode,
			{2, []string{"error: read the state of nodes: run dra-numa state in pod dra-numa/dra-driver-numa-*" + noExec, "hint: bind a Role with the verbs get and create on pods/exec in the namespace of the driver"}},
			nodes,
		},
		"gather --file " + bundle: {
			{0, []string{"the bundle lacks configz: ", "the bundle lacks state of the node: ", bundle}},
			{0, []string{"the bundle lacks configz: *" + noProxy, "the bundle lacks state of the node: *" + noExec, bundle}},
			nodes,
		},
		"explain pod waits -n " + team: {
			{0, []string{team + "/waits: fits on 1 of 1 nodes"}},
			{0, []string{team + "/waits: fits on 1 of 1 nodes"}},
			{0, []string{team + "/waits: " + unknown, unseen, gates}},
		},
		"explain pod large -n " + team: {
			{0, []string{team + "/large: does not fit on the only node", "asks for 64 cpu of one device"}},
			{0, []string{team + "/large: does not fit on the only node", "asks for 64 cpu of one device"}},
			{0, []string{team + "/large: " + unknown, unseen}},
		},
		"explain claim large -n " + team: {
			{0, []string{team + "/large: does not fit on the only node"}},
			{0, []string{team + "/large: does not fit on the only node"}},
			{0, []string{team + "/large: " + unknown, unseen}},
		},
		"explain deployment web -n " + team: {
			{0, []string{"Deployment " + team + "/web: wants 1 pod"}},
			{0, []string{"Deployment " + team + "/web: wants 1 pod"}},
			{0, []string{"Deployment " + team + "/web: wants 1 pod", unseen}},
		},
		"explain pod waits -n default": {
			{2, []string{"there is no Pod default/waits in the cluster"}},
			{2, []string{"there is no Pod default/waits in the cluster"}},
			{2, []string{`error: read the cluster: list ResourceClaims: *is forbidden: User "` + tenantUser + `" cannot list resource "resourceclaims" in API group "resource.k8s.io" in the namespace "default"`}},
		},
		"suggest-evictions pod large -n " + team: {
			{1, []string{"no eviction helps"}},
			{1, []string{"no eviction helps"}},
			nodes,
		},
	}
	known := []string{"ui", "completion", "help", "generate", "pick", "slices", "topology"} // ui is below; the others ask no cluster
	for line, row := range rows {
		known = append(known, strings.Fields(line)[0])
		for i, user := range []string{"", viewer, tenantUser} {
			_ = os.Remove(bundle)
			exitCode, text := runAs(t, program, user, strings.Fields(line)...)
			if exitCode != row[i].exitCode {
				t.Errorf("%s as %q: exit code %d, want %d, with\n%s", line, user, exitCode, row[i].exitCode, text)
			}
			for _, part := range row[i].parts {
				pattern := strings.ReplaceAll(regexp.QuoteMeta(part), `\*`, `.*`)
				if !regexp.MustCompile(pattern).MatchString(text) {
					t.Errorf("%s as %q says\n%swant %q", line, user, text, part)
				}
			}
			if _, err := os.Stat(bundle); strings.HasPrefix(line, "gather") && (err == nil) != (exitCode == 0) {
				t.Errorf("%s as %q: exit code %d, file: %v", line, user, exitCode, err)
			}
		}
	}
	_, commands := runAs(t, program, "", "__complete", "")
	for command := range strings.Lines(commands) {
		if name, _, is := strings.Cut(command, "\t"); is && !slices.Contains(known, name) {
			t.Errorf("no row is about %s", name)
		}
	}
	for _, user := range []string{"", viewer} {
		if page := pageOf(t, program, user); !strings.Contains(page, viewed) {
			t.Errorf("ui as %q shows\n%s", user, page)
		}
	}
	exitCode, text := runAs(t, program, tenantUser, "ui", "--listen", "127.0.0.1:0")
	if exitCode != 2 || !strings.Contains(text, nodes.parts[0]) {
		t.Errorf("ui as %q: exit code %d, %s", tenantUser, exitCode, text)
	}
}

// runAs runs a command as a user, "" for the administrator. Whatever it may not read, it
// says so in lines of its own.
func runAs(t *testing.T, program, user string, args ...string) (exitCode int, text string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, withUser(user, args)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	var failed *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	exitCode, text = command.ProcessState.ExitCode(), stdout.String()+stderr.String()
	for line := range strings.Lines(stderr.String()) {
		if args[0] != "__complete" && !strings.HasPrefix(line, "kubectl-numa: ") {
			t.Errorf("%s as %q prints to stderr\n%s", strings.Join(args, " "), user, &stderr)
		}
	}
	for _, dump := range []string{"goroutine ", `"kind":"Status"`, `"kind": "Status"`, "&errors.StatusError", "v1.Status{"} {
		if strings.Contains(text, dump) {
			t.Errorf("%s as %q prints %q in\n%s", strings.Join(args, " "), user, dump, text)
		}
	}
	return exitCode, text
}

func withUser(user string, args []string) []string {
	if args[0] == "__complete" {
		return args
	}
	args = append(args, "--kubeconfig", os.Getenv("APISERVER_KUBECONFIG"))
	if user == "" {
		return args
	}
	return append(args, "--as", user)
}

// pageOf runs ui, and returns its first page.
func pageOf(t *testing.T, program, user string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, withUser(user, []string{"ui", "--listen", "127.0.0.1:0"})...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil || strings.Contains(stderr.String(), "kubectl-numa: ") {
			t.Errorf("ui as %q ends with %v and prints\n%s", user, err, &stderr)
		}
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Errorf("ui as %q: %v", user, err)
		return ""
	}
	cookies, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	page, browser := "", http.Client{Jar: cookies} // the address has a token, which becomes a cookie
	within(t, patience, func() string {            // the first page may be empty until the lists are read
		answer, err := browser.Get(strings.TrimSpace(address))
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if page = string(text); err != nil || !strings.Contains(page, "Nodes: 1.") {
			return "ui shows\n" + page
		}
		return ""
	})
	return page
}

// viewedCluster makes a node with zones and the driver's pod, what a tenant makes, and
// the rights of the users.
func viewedCluster(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	core := admin.CoreV1()
	amounts := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("10Gi")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: viewed, Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/hostname": viewed}}}
	node.Status.Capacity, node.Status.Allocatable = amounts, amounts
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	if _, err := core.Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeNode(t, admin, viewed) })
	stayReady(t, admin)
	publish(t.Context(), t, admin, viewed, rigMachine())
	driverPod(t, admin)

	create(t, core.Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	user := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	}
	const role = "dra-driver-numa-viewer"
	create(t, admin.RbacV1().ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: viewer}, Subjects: user(viewer), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	})
	create(t, admin.RbacV1().RoleBindings("dra-numa"), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: viewer}, Subjects: user(viewer), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	})
	create(t, admin.RbacV1().RoleBindings(team), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: tenantUser}, Subjects: user(tenantUser), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	})
	for name, cpus := range map[string]string{"waits": "2", "large": "64"} {
		create(t, admin.ResourceV1().ResourceClaims(team), &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "zone", Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: "zone.dra.numa",
					Capacity:        &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse(cpus)}},
				},
			}}}},
		})
		pod := waitingPod()
		pod.Name = name
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: &name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "zone"}}
		create(t, core.Pods(team), &pod)
	}
	labels := map[string]string{"app": "web"}
	template := waitingPod()
	create(t, admin.AppsV1().Deployments(team), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	})
}

// stayReady says until the end of the test what a kubelet says: else the node would not be
// ready after a minute, and neither would the driver's pod.
func stayReady(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	running.Go(func() {
		for beat := time.Tick(10 * time.Second); ; {
			select {
			case <-t.Context().Done():
				return
			case <-beat:
			}
			text := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": %q}]}}`, time.Now().UTC().Format(time.RFC3339))
			if _, err := admin.CoreV1().Nodes().Patch(t.Context(), viewed, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, "status"); err != nil && t.Context().Err() == nil {
				t.Errorf("heartbeat of the node: %v", err)
			}
		}
	})
}

// waitingPod is a pod that no scheduler takes.
func waitingPod() corev1.Pod {
	return corev1.Pod{Spec: corev1.PodSpec{
		// The node has no kubelet, so it gets taints.
		Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SchedulerName: nobody, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{Name: "main", Image: "none"}},
	}}
}

// driverPod waits until the DaemonSet has a pod on the node, and says in its status what a
// kubelet would say.
func driverPod(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	pods := admin.CoreV1().Pods("dra-numa")
	deleteAll := func() { // no kubelet ends them
		//nolint:usetesting // the test's own context may have ended by now
		if err := pods.DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}); err != nil {
			t.Errorf("delete the driver's pod: %v", err)
		}
	}
	t.Cleanup(deleteAll)
	within(t, time.Minute, func() string {
		set, err := admin.AppsV1().DaemonSets("dra-numa").Get(t.Context(), "dra-driver-numa", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + viewed})
		if err != nil || len(list.Items) != 1 {
			return "the DaemonSet has no pod on the node"
		}
		if !metav1.IsControlledBy(&list.Items[0], set) {
			deleteAll()
			return "the node has the pod of an earlier DaemonSet"
		}
		pod := &list.Items[0]
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil
		for _, container := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			})
		}
		if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}
