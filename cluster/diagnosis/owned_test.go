package diagnosis

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whatever a tenant writes on its pod, it is not the driver's.
func TestOnlyPodsOfTheDaemonSetAreTheDaemons(t *testing.T) {
	for what, do := range map[string]func(*corev1.Pod){
		"another namespace": func(p *corev1.Pod) { p.Namespace = "tenant" },
		"no owner":          func(p *corev1.Pod) { p.OwnerReferences = nil },
		"another UID":       func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"no UID":            func(p *corev1.Pod) { p.OwnerReferences[0].UID = "" },
		"no controller":     func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
	} {
		facts := healthy(t)
		pod := facts.daemonPod()
		do(pod)
		facts.Objects.Slices = nil // these say too which nodes have the driver
		if pods, nodes, found := facts.DaemonPods(), facts.Nodes(), facts.LookAlikes(); len(pods)+len(nodes) > 0 || len(found) != 1 {
			t.Errorf("%s: pods %v, nodes %v, look-alikes %v", what, pods, nodes, found)
		}
		if problems := CountProblems(lookAlikesOf(facts)); problems > 0 {
			t.Errorf("%s: %d problems, which would let a tenant fail every check", what, problems)
		}
	}
	facts := healthy(t)
	facts.daemonPod().Labels = nil
	if len(facts.DaemonPods()) != 1 || len(facts.LookAlikes()) != 0 {
		t.Error("labels decide")
	}
	// Objects without UIDs do not own each other.
	facts.Installation.DaemonSets[0].UID, facts.daemonPod().OwnerReferences[0].UID = "", ""
	if len(facts.DaemonPods()) != 0 {
		t.Error("a DaemonSet without a UID owns a pod")
	}
}

func lookAlikesOf(f *Facts) []Finding { return run([]Check{{lookAlikes, "driver", lookAlike}}, f) }

func TestWebhooksPodsAreThoseOfItsReplicaSets(t *testing.T) {
	facts := healthy(t)
	pod := facts.daemonPod().DeepCopy()
	pod.OwnerReferences[0].UID = "replicas"
	set := &appsv1.ReplicaSet{}
	set.UID = types.UID("replicas")
	facts.Installation.ReplicaSets = []*appsv1.ReplicaSet{set}
	if program := facts.Installation.Program(pod); program != WebhookName {
		t.Errorf("the pod runs %q", program)
	}
	if pod.Namespace = "tenant"; facts.Installation.Program(pod) != "" {
		t.Error("a pod of a tenant is the webhook")
	}
}

// The namespace is that of the binding, or the user's; a DaemonSet of a tenant is not
// counted.
func TestNamespaceIsThatOfTheBinding(t *testing.T) {
	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "a", Namespace: namespace}
	}
	for _, row := range []struct {
		named    string
		subjects []rbacv1.Subject
		want     string
		sets     int
	}{
		{"", []rbacv1.Subject{account("dra-numa")}, "dra-numa", 1},
		{"", []rbacv1.Subject{account("dra-numa"), account("dra-numa"), {Kind: "User", Name: "u"}}, "dra-numa", 1},
		{"", []rbacv1.Subject{account("dra-numa"), account("other")}, "", 2},
		{"", nil, "", 2},
		{"dra-numa", nil, "dra-numa", 1},
		{"other", []rbacv1.Subject{account("dra-numa")}, "other", 0},
	} {
		i := healthy(t).Installation
		i.Bindings[0].Subjects = row.subjects
		tenants := i.DaemonSets[0].DeepCopy()
		tenants.Namespace = "tenant"
		i.DaemonSets = append(i.DaemonSets, tenants)
		err := i.Locate(row.named)
		if i.Namespace != row.want || (err == nil) != (row.want != "") || len(i.DaemonSets) != row.sets {
			t.Errorf("%q, %v: namespace %q, error %v, %d DaemonSets, want %q, %d", row.named, row.subjects, i.Namespace, err, len(i.DaemonSets), row.want, row.sets)
		}
	}
}
