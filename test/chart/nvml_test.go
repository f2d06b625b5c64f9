package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
)

const nvmlName = "dra-driver-numa-nvml"

// TestGPUsAreAskedForInAPodOfItsOwn: it writes the only file that the daemon reads of
// it, and has no right to anything else.
func TestGPUsAreAskedForInAPodOfItsOwn(t *testing.T) {
	rendered := mustRender(t, "nvml.enabled=true", "nvml.image=example.com/cuda:13", "image.repository=example.com/numa", "image.tag=v1")
	set := named[appsv1.DaemonSet](t, rendered, "DaemonSet", nvmlName)
	pod := set.Spec.Template.Spec
	if pod.RuntimeClassName == nil || *pod.RuntimeClassName != "nvidia" || pod.NodeSelector["nvidia.com/gpu.present"] != "true" ||
		pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.HostNetwork || pod.HostPID {
		t.Errorf("pod %+v", pod)
	}
	container := pod.Containers[0]
	if context := container.SecurityContext; container.Image != "example.com/cuda:13" || context.Privileged != nil || len(context.Capabilities.Add) > 0 ||
		!cmp.Equal(container.Command, []string{"/numa/numa-nvml"}) {
		t.Errorf("container %+v", container)
	}
	if diff := cmp.Diff([]string{"/run/dra-numa at /run/dra-numa", "numa (no host path) at /numa read-only"}, mounts(pod, container)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	for _, volume := range pod.Volumes {
		if volume.Name == "numa" && (volume.Image == nil || volume.Image.Reference != "example.com/numa:v1") {
			t.Errorf("the program comes from %+v", volume)
		}
	}
	daemon := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa")
	if got := strings.Join(mounts(daemon.Spec.Template.Spec, daemon.Spec.Template.Spec.Containers[0]), "\n"); !strings.Contains(got, "/run/dra-numa at /run/dra-numa read-only") {
		t.Errorf("the daemon mounts %s", got)
	}
}

func TestGPUsAreAskedForIfThatIsWanted(t *testing.T) {
	if rendered := mustRender(t); strings.Contains(rendered, nvmlName) || strings.Contains(rendered, "/run/dra-numa\n") {
		t.Error("by default there is something of it")
	}
	if _, stderr, err := render(t, "nvml.enabled=true"); err == nil || !strings.Contains(stderr, "nvml.image: an image with the GNU C library is wanted") {
		t.Errorf("without an image: %v, %s", err, stderr)
	}
}
