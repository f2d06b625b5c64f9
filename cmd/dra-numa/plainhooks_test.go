package main

import (
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// installedBy is the DaemonSet of the driver as Helm has created it, changed by change.
func installedBy(change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dra-numa", Name: "dra-driver-numa", Annotations: map[string]string{"meta.helm.sh/release-name": "numa"},
	}}
	change(daemons)
	return daemons
}

func byHelm(*appsv1.DaemonSet) {}

// helm template renders hooks, too, and kubectl, kustomize and Flux apply them as any object:
// nothing is uninstalled, and the driver's devices stay as they are.
func TestHooksThatNobodyRunsChangeNothing(t *testing.T) {
	f := releaseFlags{namespace: "dra-numa", daemonSet: "dra-driver-numa", cleaner: "cleaners", timeout: time.Hour}
	daemons := installedBy(func(d *appsv1.DaemonSet) {
		d.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller"}}
	})
	rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: uninstallRule}}
	client := fake.NewClientset(daemons, nodeSlice("n1"))
	want := "DaemonSet dra-numa/dra-driver-numa is installed neither by Helm nor by Argo CD, so nobody uninstalls it: leave the hooks of the chart out, with helm template --no-hooks or skipHooks"
	if err := uninstallCheck(t.Context(), client, f, io.Discard); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	checkRule(t, client, false)
	client = fake.NewClientset(daemons, nodeSlice("n1"), rule)
	want = "DaemonSet dra-numa/dra-driver-numa is installed: leave the hooks of the chart out, with helm template --no-hooks or skipHooks"
	if err := uninstallFinish(t.Context(), client, f, io.Discard); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if all, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 {
		t.Errorf("slices %v, error %v", all, err)
	}
	checkRule(t, client, false) // an earlier build has made it
}

func TestHooksRunForHelmAndArgo(t *testing.T) {
	f := releaseFlags{namespace: "dra-numa", daemonSet: "dra-driver-numa"}
	for name, row := range map[string]struct {
		change func(*appsv1.DaemonSet)
		rule   bool
	}{
		"Helm": {byHelm, true},
		"Argo CD": {func(d *appsv1.DaemonSet) {
			d.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "numa:apps/DaemonSet:dra-numa/dra-driver-numa"}
		}, true},
		"Argo CD that tracks by label": {func(d *appsv1.DaemonSet) {
			d.Annotations = nil
			d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "argocd-controller"}}
		}, true},
		// helm uninstall has deleted it, and was interrupted: the second time, no daemon publishes.
		"a second time": {func(d *appsv1.DaemonSet) { d.Name = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(installedBy(row.change))
			var out strings.Builder
			if err := uninstallCheck(t.Context(), client, f, &out); err != nil || !strings.HasSuffix(out.String(), "No pod uses a claim of the driver.\n") {
				t.Errorf("%q, error %v", out.String(), err)
			}
			checkRule(t, client, row.rule)
		})
	}
}
