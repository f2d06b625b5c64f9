package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
	"github.com/dra-driver-numa/dra-driver-numa/test/podexec"
)

func collected(t *testing.T, s *server) bundle.Bundle {
	t.Helper()
	client, exec := s.connect(t)
	b, err := Bundle(t.Context(), client, exec, "", time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// contents is the collected facts except the objects, one line each, sorted.
func contents(b bundle.Bundle) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	installed := b.Facts.Installation
	add("version %s", b.Facts.Version)
	for gate, on := range b.Facts.Gates {
		add("gate %s %t", gate, on)
	}
	for _, o := range installed.DaemonSets {
		add("DaemonSet %s %d", o.Name, len(o.ManagedFields))
	}
	for _, o := range installed.Deployments {
		add("Deployment %s %d", o.Name, len(o.ManagedFields))
	}
	for _, o := range installed.ClusterRoles {
		add("ClusterRole %s %d", o.Name, len(o.ManagedFields))
	}
	for _, o := range installed.Bindings {
		add("ClusterRoleBinding %s %d", o.Name, len(o.ManagedFields))
	}
	for _, o := range installed.ConfigMaps {
		add("ConfigMap %s %d %s", o.Name, len(o.ManagedFields), o.Data["node.yaml"])
	}
	for _, policy := range b.Facts.Policies {
		add("policy %s", policy)
	}
	for node, kubelet := range b.Facts.Kubelets {
		add("kubelet %s %s", node, kubelet.CPUManagerPolicy)
	}
	for node, state := range b.Facts.States {
		add("state %s %d", node, state.Checkpoint.Version)
	}
	for node, config := range b.Configs {
		add("config %s %s", node, config)
	}
	for node, archive := range b.Machines {
		machine := "unreadable"
		if root, err := capture.Read(bytes.NewReader(archive)); err == nil {
			read, _ := numa.Read(root)
			machine = read.Online.String()
		}
		add("machine %s %s", node, machine)
	}
	for _, event := range b.Events {
		add("event %s", event.Message)
	}
	for _, log := range b.Logs {
		add("log %s %s %t %s", log.Pod, log.Container, log.Previous, strings.TrimSpace(string(log.Text)))
	}
	slices.Sort(lines)
	return lines
}

func everything() []string {
	return []string{
		"ClusterRole role 0", "ClusterRoleBinding binding 0", "ConfigMap config 0 kind: NodeConfig", "DaemonSet set 0", "Deployment deployment 0",
		"config worker-1 kind: EffectiveConfig", "config worker-2 kind: EffectiveConfig",
		"event of a node", "event of ours", "event of ours before", "gate DRAConsumableCapacity true", "kubelet worker-1 static", "kubelet worker-2 none",
		"log driver-1 driver false one", "log driver-1 keeper false two", "log driver-1 keeper true three",
		"log driver-2 driver false four", "log driver-2 keeper false five", "log driver-2 keeper true six", "log webhook-1 webhook false seven",
		"machine worker-1 0-3", "machine worker-2 0-3", "policy BalloonsPolicy dra-numa/default",
		"state worker-1 1", "state worker-2 1", "version v1.37.2",
	}
}

func TestBundleHasAllThereIs(t *testing.T) {
	b := collected(t, newServer())
	if diff := cmp.Diff(everything(), contents(b)); diff != "" || len(b.Facts.Unread)+len(b.Facts.Missing) > 0 || len(b.Facts.Objects.Nodes) != 2 {
		t.Errorf("unread %+v, %d nodes; contents (-want +got):\n%s", b.Facts.Unread, len(b.Facts.Objects.Nodes), diff)
	}
	if want := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC); b.Gathered != want {
		t.Errorf("gathered %s, want %s", b.Gathered, want)
	}
}

// If the user may not read something that is not necessary, it is in Unread, and the rest
// is read. An error of the component is in Unread as well, but is not Denied.
func TestWhatIsForbiddenIsUnreadAndTheRestIsThere(t *testing.T) {
	for path, row := range map[string]struct {
		lost, unread string // prefixes of the lines, separated by |; node and setting of the first
	}{
		"/metrics": {"gate ", " feature gates"},
		"/apis/apps/v1/namespaces/dra-numa/daemonsets?":          {"DaemonSet |kubelet |log driver|state |config |machine ", " DaemonSets"},
		"/apis/apps/v1/namespaces/dra-numa/deployments":          {"Deployment |log webhook", " Deployments"},
		"/apis/apps/v1/namespaces/dra-numa/replicasets":          {"log webhook", " ReplicaSets"},
		"/apis/rbac.authorization.k8s.io/v1/clusterroles?":       {"ClusterRole ", " ClusterRoles"},
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": {"ClusterRoleBinding |ConfigMap |DaemonSet |Deployment |kubelet |log |state |config |machine ", " ClusterRoleBindings"},
		"/api/v1/nodes/worker-2/proxy/configz":                   {"kubelet worker-2", "worker-2 configz"},
		"/api/v1/namespaces/dra-numa/configmaps":                 {"ConfigMap ", " ConfigMaps"},
		"/api/v1/events":                                         {"event ", " events"},
		"/api/v1/namespaces/dra-numa/pods/driver-2/exec":         {"state worker-2|config worker-2|machine worker-2", "worker-2 state of the node"},
		"/api/v1/namespaces/dra-numa/pods/driver-1/log driver":   {"log driver-1 driver", "worker-1 log of driver"},
		"/api/v1/namespaces/dra-numa/pods/driver-1/log keeper previous": {
			"log driver-1 keeper true",
			"worker-1 log of keeper",
		},
	} {
		for _, answer := range []any{refused{}, broken{}} {
			s := newServer()
			for full := range s.answers {
				if strings.HasPrefix(full, path) {
					s.answers[full] = answer
				}
			}
			b := collected(t, s)
			want := slices.DeleteFunc(everything(), func(line string) bool {
				return slices.ContainsFunc(strings.Split(row.lost, "|"), func(lost string) bool { return strings.HasPrefix(line, lost) })
			})
			if diff := cmp.Diff(want, contents(b)); diff != "" {
				t.Errorf("%s is %T (-want +got):\n%s", path, answer, diff)
			}
			_, denied := answer.(refused)
			unread := append(b.Facts.Unread, b.Facts.Missing...)
			reasons := 1
			if strings.HasSuffix(path, "clusterrolebindings") {
				reasons = 2 // the states of the nodes too are not there
			}
			if strings.HasSuffix(path, "driver-2/exec") {
				reasons = 3 // nor are its files and the configuration of its daemon
			}
			if len(unread) != reasons || unread[0].Node+" "+unread[0].Setting != row.unread || unread[0].Denied != denied || unread[0].Why == "" {
				t.Errorf("%s is %T: unread %+v, want %q, denied %t", path, answer, unread, row.unread, denied)
			}
		}
	}
}

// A pod of a tenant has the labels and the owner of the driver's pods. It is not asked, and
// its log is not in the bundle.
func TestNothingOfATenantIsAsked(t *testing.T) {
	s := newServer()
	daemon := daemonPod("driver-3", "worker-1")
	daemon.Namespace = "tenant"
	loose := daemonPod("driver-0", "worker-1") // the first by name
	loose.OwnerReferences = nil
	s.answers["/api/v1/pods"] = list(daemonPod("driver-1", "worker-1"), daemonPod("driver-2", "worker-2"), webhookPod("webhook-1", "dra-numa"),
		daemon, loose, webhookPod("webhook-2", "tenant"))
	b := collected(t, s)
	if diff := cmp.Diff(everything(), contents(b)); diff != "" || len(b.Facts.Unread)+len(b.Facts.Missing) > 0 {
		t.Errorf("unread %+v, missing %+v, contents (-want +got):\n%s", b.Facts.Unread, b.Facts.Missing, diff)
	}
	for path := range s.asked {
		if strings.Contains(path, "tenant") || strings.Contains(path, "driver-0") {
			t.Errorf("asked %s", path)
		}
	}
	if found := fmt.Sprint(b.Facts.LookAlikes()); found != "[1 in namespace dra-numa: driver-0 1 in namespace tenant: driver-3]" {
		t.Errorf("look-alikes are %s", found)
	}
}

// Without the objects of the cluster, collecting fails.
func TestWithoutItsObjectsThereIsNoDiagnosis(t *testing.T) {
	for _, path := range []string{"/api/v1/nodes", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceclaims", "/version"} {
		s := newServer()
		s.answers[path] = refused{}
		client, exec := s.connect(t)
		if _, err := Bundle(t.Context(), client, exec, "", time.Now()); err == nil {
			t.Errorf("%s is forbidden, and there is a bundle", path)
		}
	}
}

// A user who may not ask the first node asks no other node, neither its kubelet nor the
// daemon's pod.
func TestWhoMayNotAskOneNodeAsksNoOther(t *testing.T) {
	s := newServer()
	pods := "/api/v1/namespaces/dra-numa/pods/"
	for _, path := range []string{"/api/v1/nodes/worker-1/proxy/configz", "/api/v1/nodes/worker-2/proxy/configz", pods + "driver-1/exec", pods + "driver-2/exec"} {
		s.answers[path] = refused{}
	}
	b := collected(t, s)
	if n := s.asked["/api/v1/nodes/worker-2/proxy/configz"] + s.asked[pods+"driver-2/exec"]; n != 0 {
		t.Errorf("%d requests for the second node", n)
	}
	want := []string{" configz true", " state of the node true"}
	var got []string
	for _, unread := range append(b.Facts.Unread, b.Facts.Missing...) {
		got = append(got, fmt.Sprintf("%s %s %t", unread.Node, unread.Setting, unread.Denied))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unread (-want +got):\n%s", diff)
	}
}

// What the API server says of the driver's namespace is read, and of refused pods only if some
// are missing: the newest event of each object.
func TestPodsThatAreRefusedAreRead(t *testing.T) {
	const path, events = "/api/v1/namespaces/dra-numa", "/api/v1/namespaces/dra-numa/events"
	event := func(kind, name, message string, minute int) corev1.Event {
		at := time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC)
		return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Message: message, LastTimestamp: metav1.NewTime(at)}
	}
	s := newServer()
	s.answers[path] = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{diagnosis.PodSecurityLabel: "restricted"}}}
	s.answers[events] = list(event("DaemonSet", "set", "new", 3), event("DaemonSet", "set", "old", 1), event("ReplicaSet", "replicas", "quota", 2))
	installed := factsOf(t, s).Installation
	if installed.PodSecurity != "restricted" || len(installed.Refusals) != 2 {
		t.Errorf("level %q, refusals %+v", installed.PodSecurity, installed.Refusals)
	}
	if want := (diagnosis.Refusal{Kind: "DaemonSet", Name: "set", Message: "new"}); !slices.Contains(installed.Refusals, want) {
		t.Errorf("refusals %+v, want %+v", installed.Refusals, want)
	}
	s.answers["/apis/apps/v1/namespaces/dra-numa/deployments?labelSelector="+diagnosis.WebhookSelector()] = list[any]()
	s.asked = make(map[string]int)
	if installed := factsOf(t, s).Installation; len(installed.Refusals) > 0 || s.asked[events] > 0 {
		t.Errorf("no pod is missing, and refusals are %+v, asked %d times", installed.Refusals, s.asked[events])
	}
	for answer, denied := range map[any]bool{refused{}: true, broken{}: false} {
		s.answers[path] = answer
		if unread := factsOf(t, s).Unread; len(unread) != 1 || unread[0].Setting != "Namespace" || unread[0].Denied != denied {
			t.Errorf("%T: unread %+v", answer, unread)
		}
	}
}

func TestKubeletThatAnswersNonsenseIsUnread(t *testing.T) {
	for answer, want := range map[string]string{"{": "parse configz: unexpected end of JSON input", "{}": "parse configz: no kubeletconfig"} {
		s := newServer()
		s.answers["/api/v1/nodes/worker-1/proxy/configz"] = answer
		client, _ := s.connect(t)
		facts, err := Facts(t.Context(), client, "")
		if err != nil {
			t.Fatal(err)
		}
		if unread := facts.Unread; len(unread) != 1 || unread[0].Why != want || unread[0].Denied || len(facts.Kubelets) != 1 {
			t.Errorf("%s: unread %+v, kubelets %+v", answer, unread, facts.Kubelets)
		}
	}
}

// factsOf is the facts that States needs.
func factsOf(t *testing.T, s *server) *diagnosis.Facts {
	t.Helper()
	client, _ := s.connect(t)
	facts, err := Facts(t.Context(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// The state is asked with the daemon's paths, and in the keeper's container if the daemon
// does not start.
func TestStateIsAskedOfWhatRuns(t *testing.T) {
	for what, row := range map[string]struct {
		do   func(*corev1.Pod)
		want string
	}{
		"all": {func(*corev1.Pod) {}, "driver-1 driver /dra-numa state --kubelet-root=/k --cgroup-root=/host/cgroup"},
		"keeper": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		}, "driver-1 keeper /dra-numa state --kubelet-root=/k --cgroup-root=/host/cgroup"},
		"none": {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, ""},
	} {
		facts := factsOf(t, newServer())
		row.do(facts.DaemonPods()[0])
		var got string
		states, unread := States(t.Context(), func(_ context.Context, pod *corev1.Pod, container string, command []string) ([]byte, error) {
			got = strings.Join(append([]string{pod.Name, container}, command...), " ")
			return []byte(stateText), nil
		}, facts, []string{"worker-1"})
		if got != row.want || (len(states) == 1) != (row.want != "") || (len(unread) == 0) != (row.want != "") {
			t.Errorf("%s: asked %q, want %q; states %v, unread %+v", what, got, row.want, states, unread)
		}
		if row.want == "" && unread[0].Why != "no pod of the driver runs on the node" {
			t.Errorf("%s: unread %+v", what, unread)
		}
	}
}

// A part that is read only on request takes one flag more, and is asked for once.
func TestStateWithMore(t *testing.T) {
	facts := factsOf(t, newServer())
	for want, ask := range map[string]func(context.Context, Exec, *diagnosis.Facts, []string) (map[string]*nodestate.State, []diagnosis.Unread){
		"state --host --kubelet-root=/k --cgroup-root=/host/cgroup --nri-socket=/n": HostStates,
		"state --caches --kubelet-root=/k --cgroup-root=/host/cgroup":               CacheStates,
	} {
		var asked []string
		states, unread := ask(t.Context(), func(_ context.Context, _ *corev1.Pod, _ string, command []string) ([]byte, error) {
			asked = append(asked, strings.Join(command[1:], " "))
			return nil, errors.New("gone")
		}, facts, []string{"worker-1"})
		if got := strings.Join(asked, "|"); got != want || len(states) > 0 || len(unread) != 1 {
			t.Errorf("asked %q, want %q; states %v, unread %+v", got, want, states, unread)
		}
	}
}

// Only the daemon's container has its configuration, and an archive is checked.
func TestMachinesAndConfigsThatAreNotThere(t *testing.T) {
	facts := factsOf(t, newServer())
	facts.DaemonPods()[0].Status.ContainerStatuses[0].State = corev1.ContainerState{}
	exec := func(context.Context, *corev1.Pod, string, []string) ([]byte, error) {
		return bytes.Repeat([]byte("x"), configBytes+1), nil
	}
	nodes := []string{"worker-1", "worker-2"}
	configs, unread := Configs(t.Context(), exec, facts, nodes)
	if len(configs) != 0 || len(unread) != 2 || unread[0].Why != "the daemon does not run" || unread[1].Why != "the configuration has 1048577 bytes, at most 1048576 are kept" {
		t.Errorf("configurations %v, unread %+v", configs, unread)
	}
	machines, unread := Machines(t.Context(), exec, facts, nodes)
	if len(machines) != 0 || len(unread) != 2 || unread[0].Why != "unpack: gzip: invalid header" {
		t.Errorf("%d machines, unread %+v", len(machines), unread)
	}
}

// All machines of a bundle together are bounded.
func TestMachinesHaveLimitedRoom(t *testing.T) {
	archives := map[string][]byte{"c": []byte("123"), "a": []byte("123"), "b": []byte("123")}
	unread := limited(archives, 6)
	if len(archives) != 2 || archives["a"] == nil || archives["b"] == nil || len(unread) != 1 || unread[0].Node != "c" {
		t.Errorf("machines %v, unread %+v", archives, unread)
	}
}

// Exec returns what the program prints on stdout, and its error has the last line of
// stderr.
func TestExecIsWhatTheProgramPrints(t *testing.T) {
	s := newServer()
	path := "/api/v1/namespaces/dra-numa/pods/driver-1/exec"
	_, exec := s.connect(t)
	pod := daemonPod("driver-1", "worker-1")
	long := strings.Repeat("x", 100_000)
	for what, row := range map[string]struct {
		answer     any
		want, fail string
	}{
		"answer": {podexec.Handler(func(container string, command []string) (string, string, int) {
			return long + container + strings.Join(command, "|"), "a note", 0
		}), long + "keeper/dra-numa|state|a b", ""},
		"old program": {podexec.Handler(func(string, []string) (string, string, int) {
			return "", "I1 log\ndra-numa: error: unexpected argument \"state\"\n", 2
		}), "", `exit code 2: dra-numa: error: unexpected argument "state"`},
		"no right":  {refused{}, "", "it is forbidden"},
		"no answer": {broken{}, "", "500 Internal Server Error"},
	} {
		s.answers[path] = row.answer
		got, err := exec(t.Context(), &pod, "keeper", []string{"/dra-numa", "state", "a b"})
		if string(got) != row.want || (err == nil) != (row.fail == "") || err != nil && !strings.Contains(err.Error(), row.fail) {
			t.Errorf("%s: %d bytes, error %v, want %d bytes and %q", what, len(got), err, len(row.want), row.fail)
		}
	}
}

// A state of another build, and a text that is no state, are unread.
func TestStateOfAnotherBuildIsUnread(t *testing.T) {
	facts := factsOf(t, newServer())
	for text, want := range map[string]string{
		`{"version": 2}`: `read the state of a node: written by another build: format "", version 2, this build reads format "dra.numa/state", version 1; use the kubectl-numa of the driver's build`,
		`{`:              "read the state of a node: unexpected end of JSON input",
	} {
		exec := func(context.Context, *corev1.Pod, string, []string) ([]byte, error) { return []byte(text), nil }
		if _, unread := States(t.Context(), exec, facts, []string{"worker-1"}); len(unread) != 1 || unread[0].Why != want {
			t.Errorf("%s: unread %+v, want %s", text, unread, want)
		}
	}
	failing := func(context.Context, *corev1.Pod, string, []string) ([]byte, error) { return nil, errors.New("gone") }
	_, unread := States(t.Context(), failing, facts, []string{"worker-1"})
	if want := "run dra-numa state in pod dra-numa/driver-1, container driver: gone"; len(unread) != 1 || unread[0].Why != want {
		t.Errorf("unread %+v, want %s", unread, want)
	}
}

func TestOutputIsBounded(t *testing.T) {
	b := &bounded{room: 4}
	if n, err := b.Write([]byte("1234")); n != 4 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := b.Write([]byte("5")); n != 0 || err == nil || b.String() != "1234" {
		t.Errorf("wrote %d, %v, has %q", n, err, b)
	}
	if _, err := io.Copy(&bounded{room: 4}, strings.NewReader("12345")); err == nil {
		t.Error("a copy may be longer")
	}
}

// The user reads one error, and not what client-go logs about it.
func TestExecLogsNothing(t *testing.T) {
	logged := &bounded{room: 1 << 20} // the server of this test logs too, also after Exec has returned
	klog.LogToStderr(false)
	klog.SetOutput(logged)
	t.Cleanup(func() { klog.SetOutput(os.Stderr); klog.LogToStderr(true) })
	ended := make(chan struct{})
	run := func(string, []string) (stdout, stderr string, exitCode int) {
		<-ended
		return "", "", 0
	}
	server := httptest.NewServer(podexec.Handler(run))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = NewExec(config, client)(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}}, "c", []string{"x"})
	close(ended)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the program ends with %v", err)
	}
	if klog.Flush(); strings.Contains(logged.String(), "Copying") {
		t.Errorf("the log has %s", logged)
	}
}
