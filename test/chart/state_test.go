package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// TestStateOfTheNodeCanBeReadInThePod holds the chart to what package collect does:
// it runs the daemon's program in the container driver, or keeper, with the paths
// that the daemon has. CDI specs are in the first one only.
func TestStateOfTheNodeCanBeReadInThePod(t *testing.T) {
	set := object[appsv1.DaemonSet](t, mustRender(t, "kubelet.root=/k"), "DaemonSet")
	if !selects(t, diagnosis.Daemon, set.Spec.Template.Labels) {
		t.Errorf("labels %v, by which the pod is not found", set.Spec.Template.Labels)
	}
	containers := map[string]corev1.Container{}
	for _, container := range set.Spec.Template.Spec.Containers {
		containers[container.Name] = container
	}
	daemon, keeper := containers[diagnosis.DriverContainer], containers[diagnosis.KeeperContainer]
	if daemon.Image == "" || daemon.Image != keeper.Image {
		t.Errorf("images %q and %q, want one with the daemon's program", daemon.Image, keeper.Image)
	}
	var paths []string
	for flag, below := range map[string]string{"kubelet-root": "/plugins/dra.numa", "cdi-dir": "", "cgroup-root": ""} {
		value, given := diagnosis.Argument(daemon, flag)
		if !given {
			t.Errorf("the daemon is not told --%s", flag)
		}
		paths = append(paths, value+below)
	}
	for _, path := range paths {
		mounted := func(mount corev1.VolumeMount) bool { return mount.MountPath == path }
		if !slices.ContainsFunc(daemon.VolumeMounts, mounted) {
			t.Errorf("the daemon has no %s", path)
		}
		if !slices.ContainsFunc(keeper.VolumeMounts, mounted) && path != "/var/run/cdi" {
			t.Errorf("the keeper has no %s", path)
		}
	}
}

// TestNamespaceIsInTheBinding holds the chart to how the tools find the driver's pods.
func TestNamespaceIsInTheBinding(t *testing.T) {
	rendered := mustRender(t)
	set, binding := object[appsv1.DaemonSet](t, rendered, "DaemonSet"), named[rbacv1.ClusterRoleBinding](t, rendered, "ClusterRoleBinding", "dra-driver-numa")
	if !selects(t, diagnosis.Daemon, set.Labels) || !selects(t, diagnosis.Daemon, binding.Labels) {
		t.Errorf("labels %v and %v, by which they are not found", set.Labels, binding.Labels)
	}
	installed := diagnosis.Installation{DaemonSets: []*appsv1.DaemonSet{&set}, Bindings: []*rbacv1.ClusterRoleBinding{&binding}}
	if err := installed.Locate(""); err != nil || installed.Namespace != set.Namespace || len(installed.DaemonSets) != 1 {
		t.Errorf("the namespace is %q, error %v, want %q", installed.Namespace, err, set.Namespace)
	}
}

// TestConfigurationIsGathered: by its label, and the key is the only one.
func TestConfigurationIsGathered(t *testing.T) {
	config := object[corev1.ConfigMap](t, mustRender(t, "config.reservedCPUs=0-1"), "ConfigMap")
	if text := config.Data[diagnosis.ConfigKey]; len(config.Data) != 1 || !strings.Contains(text, "reservedCPUs: 0-1") || !selects(t, diagnosis.Daemon, config.Labels) {
		t.Errorf("labels %v, data %v", config.Labels, config.Data)
	}
}
