package collect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
	"github.com/dra-driver-numa/dra-driver-numa/test/podexec"
)

// refused is the answer to a user without the right, broken is an internal error.
type (
	refused struct{}
	broken  struct{}
)

// server answers as an API server with two nodes, worker-1 and worker-2.
type server struct {
	mu      sync.Mutex
	asked   map[string]int
	answers map[string]any
}

func meta(name string, programs ...diagnosis.Program) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: "dra-numa", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "helm"}}}
	for _, program := range programs {
		m.Labels = map[string]string{diagnosis.PartOfLabel: diagnosis.PartOf, diagnosis.ComponentLabel: string(program)}
	}
	return m
}

// owned is metadata with a controller.
func owned(m metav1.ObjectMeta, uid types.UID) metav1.ObjectMeta {
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "x", Name: "x", UID: uid, Controller: ptr.To(true)}}
	return m
}

// withUID is metadata with a UID, which is its name.
func withUID(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.UID = types.UID(m.Name)
	return m
}

// webhookPod is a pod with the labels of the webhook.
func webhookPod(name, namespace string) corev1.Pod {
	pod := daemonPod(name, "worker-1")
	pod.ObjectMeta = owned(meta(name, diagnosis.Webhook), "replicas")
	pod.Namespace, pod.Status.ContainerStatuses = namespace, []corev1.ContainerStatus{{Name: "webhook"}}
	return pod
}

// daemonPod is a pod of the daemon whose two containers are ready.
func daemonPod(name, node string) corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return corev1.Pod{
		ObjectMeta: owned(meta(name, diagnosis.Daemon), "set"),
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{
			{
				Name: "driver",
				Args: []string{"--kubelet-root=/k", "-v=2", "--cgroup-root=/host/cgroup", "--nri-socket=/n"},
			}, {Name: "keeper"},
		}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "driver", State: running}, {Name: "keeper", State: running, RestartCount: 1},
		}},
	}
}

func list[T any](items ...T) any { return map[string]any{"items": items} }

const stateText = `{"format": "dra.numa/state", "version": 1, "node": "worker-1", "checkpoint": {"version": 1}}`

// said is what the daemon's program prints.
func said(command []string) string {
	switch command[1] {
	case "config":
		return "kind: EffectiveConfig"
	case "machine":
		var archive strings.Builder
		if err := capture.Write(&archive, memfs.New(map[string]string{"sys/devices/system/cpu/online": "0-3"}, nil, nil)); err != nil {
			panic(err)
		}
		return archive.String()
	}
	return stateText
}

func newServer() *server {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	daemons, webhooks := "?labelSelector="+diagnosis.Daemon.Selector(), "?labelSelector="+diagnosis.WebhookSelector()
	const apps = "/apis/apps/v1/namespaces/dra-numa/"
	logs := "/api/v1/namespaces/dra-numa/pods/"
	exec := podexec.Handler(func(_ string, command []string) (string, string, int) { return said(command), "", 0 })
	return &server{asked: make(map[string]int), answers: map[string]any{
		"/version":                               map[string]string{"gitVersion": "v1.37.2"},
		"/metrics":                               "kubernetes_feature_enabled{name=\"DRAConsumableCapacity\",stage=\"BETA\"} 1\n",
		"/api/v1/nodes":                          list(corev1.Node{ObjectMeta: meta("worker-1")}, corev1.Node{ObjectMeta: meta("worker-2")}),
		"/api/v1/pods":                           list(daemonPod("driver-1", "worker-1"), daemonPod("driver-2", "worker-2"), webhookPod("webhook-1", "dra-numa")),
		"/apis/resource.k8s.io/v1/deviceclasses": list[any](),
		"/apis/resource.k8s.io/v1/resourceslices":         list[any](),
		"/apis/resource.k8s.io/v1/resourceclaims":         list[any](),
		"/apis/resource.k8s.io/v1/resourceclaimtemplates": list[any](),
		"/apis/resource.k8s.io/v1/devicetaintrules":       list[any](),
		apps + "daemonsets" + daemons:                     list(appsv1.DaemonSet{ObjectMeta: withUID(meta("set"))}),
		apps + "deployments" + webhooks:                   list(appsv1.Deployment{ObjectMeta: withUID(meta("deployment"))}),
		apps + "replicasets" + webhooks: list(
			appsv1.ReplicaSet{ObjectMeta: withUID(owned(meta("replicas"), "deployment"))},
			appsv1.ReplicaSet{ObjectMeta: withUID(owned(meta("others"), "other"))},
		),
		"/apis/config.nri/v1alpha1":                  `{"resources": [{"name": "balloonspolicies", "kind": "BalloonsPolicy"}, {"name": "balloonspolicies/status", "kind": "BalloonsPolicy"}]}`,
		"/apis/config.nri/v1alpha1/balloonspolicies": list(corev1.ConfigMap{ObjectMeta: meta("default")}),
		logs + "webhook-1/log webhook":               "seven\n",
		"/apis/policy/v1/poddisruptionbudgets":       list[any](),
		rbac + "clusterroles" + daemons:              list(rbacv1.ClusterRole{ObjectMeta: meta("role")}),
		rbac + "clusterrolebindings" + daemons: list(rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("binding"), Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "a", Namespace: "dra-numa"}},
		}),
		"/api/v1/namespaces/dra-numa":                      corev1.Namespace{ObjectMeta: meta("dra-numa")},
		"/api/v1/nodes/worker-1/proxy/configz":             `{"kubeletconfig": {"cpuManagerPolicy": "static"}}`,
		"/api/v1/nodes/worker-2/proxy/configz":             `{"kubeletconfig": {"cpuManagerPolicy": "none"}}`,
		"/api/v1/namespaces/dra-numa/configmaps" + daemons: list(corev1.ConfigMap{ObjectMeta: meta("config"), Data: map[string]string{"node.yaml": "kind: NodeConfig"}}),
		"/api/v1/namespaces/dra-numa/events":               list[any](),
		"/api/v1/events": list(
			corev1.Event{
				Message:        "of a node",
				InvolvedObject: corev1.ObjectReference{Kind: "Node"},
			}, corev1.Event{
				Message:             "of ours",
				ReportingController: "dra.numa",
			},
			corev1.Event{
				Message: "of ours before",
				Source:  corev1.EventSource{Component: "dra.numa"},
			}, corev1.Event{Message: "of others"},
		),
		logs + "driver-1/log driver": "one\n", logs + "driver-1/log keeper": "two\n", logs + "driver-1/log keeper previous": "three\n",
		logs + "driver-2/log driver": "four\n", logs + "driver-2/log keeper": "five\n", logs + "driver-2/log keeper previous": "six\n",
		logs + "driver-1/exec": exec, logs + "driver-2/exec": exec,
	}}
}

// key identifies the request, without parameters that do not matter.
func key(r *http.Request) string {
	key, query := r.URL.Path, r.URL.Query()
	if selector := query.Get("labelSelector"); selector != "" {
		key += "?labelSelector=" + selector
	}
	if strings.HasSuffix(key, "/log") {
		key += " " + query.Get("container")
		if query.Get("previous") == "true" {
			key += " previous"
		}
	}
	return key
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[key(r)]++
	answer := s.answers[key(r)]
	s.mu.Unlock()
	switch answer := answer.(type) {
	case http.Handler:
		answer.ServeHTTP(w, r)
	case string:
		fmt.Fprint(w, answer)
	case broken:
		http.Error(w, "no route to host", http.StatusInternalServerError)
	case refused:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Message: "it is forbidden", Code: http.StatusForbidden,
		})
	case nil:
		http.Error(w, "there is no answer for "+key(r), http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// connect makes a client of the server, and an Exec that runs programs there.
func (s *server) connect(t *testing.T) (kubernetes.Interface, Exec) {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	config := &rest.Config{Host: listening.URL, QPS: -1}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, NewExec(config, client)
}
