package apiserver

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/client"
)

// ofOperator are the kinds of the Prometheus operator, which the API server does not have.
var ofOperator = regexp.MustCompile(`^(PodMonitor|PrometheusRule) `)

// TestObjectsOfTheChartAreAccepted has the API server check each object that the chart
// renders, with defaults and with every optional object, and refuse unknown fields.
func TestObjectsOfTheChartAreAccepted(t *testing.T) {
	api := clientFor(t, "APISERVER_KUBECONFIG")
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	ensureNamespace(t, cluster, "dra-numa")
	ensureNamespace(t, cluster, "numa-system")
	// Pods name these, and are refused without them.
	create(t, api.SchedulingV1().PriorityClasses(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1})
	create(t, api.CoreV1().ServiceAccounts("dra-numa"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "dra-driver-numa-test"}})
	create(t, api.CoreV1().ServiceAccounts("numa-system"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "my-numa-test"}})
	for name, row := range map[string]struct {
		args    []string
		objects int // at least so many
	}{
		"defaults": {nil, 35},
		"every optional object": {[]string{
			"--values", "../chart/testdata/every.values.yaml",
			"--set", "nvml.enabled=true,nvml.image=registry.example/cuda:1,metrics.dashboards.enabled=true",
		}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := helm(t.Context(), t, append([]string{"template", "dra-driver-numa", chartFolder, "--namespace", "dra-numa"}, row.args...)...)
			answers, err := cluster.DryRun(t.Context(), []byte(rendered))
			if err != nil {
				t.Fatal(err)
			}
			if len(answers) < row.objects {
				t.Errorf("only %d objects, want %d", len(answers), row.objects)
			}
			for object, err := range answers {
				switch {
				case ofOperator.MatchString(object) && meta.IsNoMatchError(err):
				case apierrors.IsAlreadyExists(err) && strings.HasPrefix(object, "ServiceAccount ") && strings.HasSuffix(object, "-test"): // the accounts above
				case err != nil:
					t.Errorf("%s: %v", object, err)
				}
			}
		})
	}
}

// The test above would see a field that Kubernetes does not have.
func TestUnknownFieldIsRefusedInADryRun(t *testing.T) {
	clientFor(t, "APISERVER_KUBECONFIG")
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dry, namespace: default}\n"
	for text, refused := range map[string]bool{manifest: false, manifest + "dat: {}\n": true} {
		answers, err := cluster.DryRun(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err, asked := answers["ConfigMap default/dry"]; !asked || (err != nil) != refused {
			t.Errorf("%q: %v, %t", text, err, asked)
		}
	}
	if _, err := cluster.Kubernetes.CoreV1().ConfigMaps("default").Get(t.Context(), "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the dry run has made the object: %v", err)
	}
}

// ensureNamespace makes a namespace that stays: no controller would empty it.
func ensureNamespace(t *testing.T, cluster *client.Cluster, name string) {
	t.Helper()
	_, err := cluster.Kubernetes.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
