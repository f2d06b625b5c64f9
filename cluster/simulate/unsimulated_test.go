package simulate

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestHostPortsOfSidecarsAreNamed(t *testing.T) {
	for policy, want := range map[string]bool{"restartPolicy: Always, ": true, "": false} {
		pod := read(t, podWith("p", "initContainers: [{name: i, "+policy+"ports: [{containerPort: 1, hostPort: 1}]}], containers: [{name: main}]")).Pods[0]
		if got := slices.Contains(Unsimulated(pod), "hostPort"); got != want {
			t.Errorf("of an init container with %q: %t", policy, got)
		}
	}
}

// Required anti-affinity works in both directions. Labels of namespaces are not known.
func TestRequiredAntiAffinityOfOthersIsNamed(t *testing.T) {
	const text = "required spec.affinity.podAntiAffinity of other pods"
	other := func(term string) string {
		return podWith("other", "nodeName: n1, containers: [{name: main}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{"+term+"}]}}")
	}
	waits := strings.Replace(podWith("p", "containers: [{name: main}]"), "{name: p}", "{name: p, labels: {app: x}}", 1)
	node := func(name string) string {
		return strings.Replace(nodeWith(name, "", "cpu: 4"), "{name: "+name+"}", "{name: "+name+", labels: {t: a}}", 1)
	}
	for term, want := range map[string]bool{
		"topologyKey: t, labelSelector: {matchLabels: {app: x}}":                                                   true,
		"topologyKey: t, labelSelector: {}":                                                                        true,
		"topologyKey: t":                                                                                           false,
		"topologyKey: u, labelSelector: {matchLabels: {app: x}}":                                                   false,
		"topologyKey: t, labelSelector: {matchLabels: {app: z}}":                                                   false,
		"topologyKey: t, labelSelector: {matchLabels: {app: x}}, namespaces: [team]":                               false,
		"topologyKey: t, labelSelector: {matchLabels: {app: x}}, namespaceSelector: {}":                            true,
		"topologyKey: t, labelSelector: {matchLabels: {app: x}}, namespaceSelector: {matchLabels: {a: b}}":         true,
		"topologyKey: t, labelSelector: {matchLabels: {app: z}}, namespaceSelector: {matchLabels: {a: b}}":         false,
		"topologyKey: t, labelSelector: {matchLabels: {app: x}}, namespaces: [team], namespaceSelector: {}":        true,
		"topologyKey: t, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}, namespaces: [default]": true,
	} {
		s := read(t, node("n1"), node("n2"), other(term), waits)
		c := cluster(t, s, "")
		e, err := c.ExplainPod(t.Context(), s.Pod(corev1.NamespaceDefault, "p"))
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(e.Unknown, text); got != want || got != slices.Contains(c.Unsimulated(s.Pod(corev1.NamespaceDefault, "p")), text) {
			t.Errorf("%s: unknown is %q, want it to be named: %t", term, e.Unknown, want)
		}
	}
}
