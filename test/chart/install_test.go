package chart

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// install.yaml of a release is a namespace and what helm template --no-hooks renders: kubectl
// would make the objects of hooks at once, and those for the uninstallation are among them.
func TestObjectsForKubectlAreInTheirNamespaceAndNoHooks(t *testing.T) {
	namespace := decode[corev1.Namespace](t, files.Read(t, "../../deployments/namespace.yaml"))
	if namespace.Kind != "Namespace" || namespace.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("%s %s with labels %q", namespace.Kind, namespace.Name, namespace.Labels)
	}
	rendered, stderr, err := template(t, "--no-hooks")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	kinds := map[string]int{}
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		kinds[object.Kind]++
		if object.Annotations["helm.sh/hook"] != "" {
			t.Errorf("%s %s is of a hook", object.Kind, object.Name)
		}
		if object.Namespace != namespace.Name && !slices.Contains(ofCluster, object.Kind) {
			t.Errorf("%s %s is in namespace %q, want %q", object.Kind, object.Name, object.Namespace, namespace.Name)
		}
	}
	if kinds["DaemonSet"] != 1 || kinds["DeviceClass"] < 10 || kinds["Job"]+kinds["Pod"] > 0 {
		t.Errorf("kinds %v", kinds)
	}
}
