package apiserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
)

// said is what a program prints on standard output.
func said(t *testing.T, program string, args ...string) string {
	t.Helper()
	stdout, err := exec.CommandContext(t.Context(), program, args...).Output()
	if err != nil {
		t.Errorf("%s %q: %v", program, args, err)
	}
	return string(stdout)
}

// wantRefused checks that Helm refuses to install the chart, with one line that ends so.
func wantRefused(t *testing.T, want, release, namespace string, set ...string) {
	t.Helper()
	_, stderr, err := tryHelm(t.Context(), installArgs(release, namespace, set...)...)
	var lines []string
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "Error: ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if err == nil || len(lines) != 1 || !strings.HasSuffix(lines[0], "): dra-driver-numa: "+want) {
		t.Errorf("release %s with %q: %v, want one line that ends with %q:\n%s", release, set, err, want, stderr)
	}
}

// A second driver would write the slices and the files of the first one.
func TestSecondReleaseIsRefused(t *testing.T) {
	clientFor(t, "APISERVER_KUBECONFIG")
	const want = "release dra-driver-numa in namespace dra-numa has installed the driver in this cluster, which can have only one: upgrade that release, or uninstall it first"
	for _, set := range [][]string{nil, {"rbac.create=false", "deviceClasses.create=false"}} {
		t.Run(strings.Join(set, ","), func(t *testing.T) {
			installChart(t, set...)
			wantRefused(t, want, "numa", "other", set...)
			wantRefused(t, want, "numa", "other", append(set, "fullnameOverride=my-numa", "nameOverride=my")...)
			wantRefused(t, want, "dra-driver-numa", "other", set...)
			installChart(t, set...) // an upgrade of the same release
		})
	}
	installAs(t, "numa", "other") // the first one is gone
}

// Kubernetes would say that the selector is immutable, and nothing of what to do.
func TestUpgradeThatChangesSelectorsIsRefused(t *testing.T) {
	api := clientFor(t, "APISERVER_KUBECONFIG")
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	ensureNamespace(t, cluster, "dra-numa")
	t.Run("of an older chart", func(t *testing.T) {
		labels := map[string]string{"app.kubernetes.io/name": "dra-driver-numa", "app.kubernetes.io/managed-by": "Helm"}
		create(t, api.AppsV1().DaemonSets("dra-numa"), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: "dra-driver-numa", Labels: labels,
				Annotations: map[string]string{"meta.helm.sh/release-name": "dra-driver-numa", "meta.helm.sh/release-namespace": "dra-numa"},
			},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "dra-driver-numa"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "driver", Image: "d"}}},
				},
			},
		})
		const want = "release dra-driver-numa is of a chart from before the first release, which cannot be upgraded: " +
			"delete the pods that use claims of the driver, run helm uninstall dra-driver-numa --namespace dra-numa, and install this chart"
		wantRefused(t, want, "dra-driver-numa", "dra-numa")
		wantRefused(t, want, "dra-driver-numa", "dra-numa", "fullnameOverride=numa")
	})
	t.Run("by nameOverride", func(t *testing.T) {
		installChart(t)
		wantRefused(t, "nameOverride cannot change after the installation, because DaemonSet dra-driver-numa selects pods by app.kubernetes.io/name=dra-driver-numa: "+
			"set nameOverride=dra-driver-numa, or uninstall the release first", "dra-driver-numa", "dra-numa", "nameOverride=numa")
	})
}

// The tools go by labels that no value changes, and go on believing only what an
// administrator can make.
func TestDriverWithOtherNamesIsFound(t *testing.T) {
	api := clientFor(t, "APISERVER_KUBECONFIG")
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	ensureNamespace(t, cluster, "numa-system")
	ensureNamespace(t, cluster, "tenant")
	installAs(t, "numa", "other", "nameOverride=my", "fullnameOverride=my-numa", "namespaceOverride=numa-system", "serviceAccount.name=daemon", "webhook.enabled=true,webhook.replicas=1")
	labels := map[string]string{diagnosis.PartOfLabel: diagnosis.PartOf, diagnosis.ComponentLabel: string(diagnosis.Daemon)}
	create(t, api.AppsV1().DaemonSets("tenant"), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "alike", Labels: labels},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "driver", Image: "d"}}},
		}},
	})
	program, kubeconfig := buildCLI(t), "--kubeconfig="+os.Getenv("APISERVER_KUBECONFIG")
	version := said(t, program, "version", kubeconfig)
	for _, want := range []string{"chart in numa-system", "dra-driver-numa-webhook "} {
		if !strings.Contains(version, want) {
			t.Errorf("version says nothing of %s:\n%s", want, version)
		}
	}
}

// Without the chart's roles, no object of the cluster says where the driver is: the user does.
// A DaemonSet would say it, too, but any tenant can make one.
func TestDriverWithoutRolesIsFoundByItsNamespace(t *testing.T) {
	clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t, "rbac.create=false")
	program, kubeconfig := buildCLI(t), "--kubeconfig="+os.Getenv("APISERVER_KUBECONFIG")
	wantSaid(t, "no problems found\n", program, "validate", "--driver-namespace=dra-numa", kubeconfig)
	if version := said(t, program, "version", kubeconfig); strings.Contains(version, "chart in dra-numa") {
		t.Errorf("without roles, version believes the labels of a DaemonSet:\n%s", version)
	}
}
