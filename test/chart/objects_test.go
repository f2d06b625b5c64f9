package chart

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

func TestRolePermitsOnlyWhatIsUsed(t *testing.T) {
	role := named[rbacv1.ClusterRole](t, mustRender(t), "ClusterRole", "dra-driver-numa")
	got := map[string]string{}
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs) != 0 {
			t.Errorf("rule %+v names URLs", rule)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				got[group+"/"+resource] += strings.Join(append(rule.Verbs, rule.ResourceNames...), " ")
			}
		}
	}
	// Each is called by k8s.io/dynamic-resource-allocation v0.37: the slice
	// controller of package resourceslice, and kubeletplugin for the claims.
	// The daemon's own read-back lists; it looks up recorded claims and the pods
	// that claims are reserved for, creates events on its node and on these pods,
	// and updates the status of claims. The "driver" of a claim
	// is what the API server checks then: whose devices, and on which node.
	want := map[string]string{
		"resource.k8s.io/resourceslices":        "list watch create update delete",
		"resource.k8s.io/resourceclaims":        "get",
		"resource.k8s.io/resourceclaims/status": "update",
		"resource.k8s.io/resourceclaims/driver": "associated-node:update dra.numa",
		"/nodes":                                "get",
		"/pods":                                 "get",
		"events.k8s.io/events":                  "create",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-used +granted):\n%s", diff)
	}
}

// TestOnlyTheDaemonTalksAndOnlyOthersMayPartition: what making a partition takes
// has the probe, which ends before the daemon starts, and the keeper, which has
// no token of the API server.
func TestOnlyTheDaemonTalksAndOnlyOthersMayPartition(t *testing.T) {
	pod := object[appsv1.DaemonSet](t, mustRender(t), "DaemonSet").Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod shares a namespace with the host")
	}
	if p := pod.SecurityContext.SeccompProfile; p == nil || p.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("seccomp profile = %+v, want RuntimeDefault", p)
	}
	yes, no := true, false
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, pod.Containers[0].SecurityContext); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	want.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
	if diff := cmp.Diff(want, pod.Containers[1].SecurityContext); diff != "" {
		t.Errorf("security context of the keeper (-want +got):\n%s", diff)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("every container of the pod has the token of the API server")
	}
	for _, container := range append(pod.InitContainers, pod.Containers[1:]...) {
		for _, mount := range container.VolumeMounts {
			if mount.Name == "token" {
				t.Errorf("container %s has the token of the API server", container.Name)
			}
		}
	}
	want.Capabilities.Add = []corev1.Capability{"SYS_ADMIN", "DAC_OVERRIDE"}
	if diff := cmp.Diff(want, pod.InitContainers[0].SecurityContext); diff != "" {
		t.Errorf("security context of the probe (-want +got):\n%s", diff)
	}
}

// mounting says whether mounts are there with some values of the chart.
type mounting struct {
	set  string
	want bool
}

// checkMounts checks that the daemon has all mounts, and the flag unless it is "", in those
// rows that want them, and none of these in the others.
func checkMounts(t *testing.T, want []string, flag string, rows ...mounting) {
	t.Helper()
	for _, row := range rows {
		pod := object[appsv1.DaemonSet](t, mustRender(t, row.set), "DaemonSet").Spec.Template.Spec
		daemon := pod.Containers[0]
		for _, mount := range want {
			if got := slices.Contains(mounts(pod, daemon), mount); got != row.want {
				t.Errorf("%s: %s is mounted: %t, mounts %q", row.set, mount, got, mounts(pod, daemon))
			}
		}
		if flag != "" && slices.Contains(daemon.Args, flag) != row.want {
			t.Errorf("%s: want the flag %s: %t, arguments %v", row.set, flag, row.want, daemon.Args)
		}
	}
}

// What others have for PCI functions is read where there are some to be prepared.
func TestStaticCDISpecsAreMountedForDevices(t *testing.T) {
	checkMounts(t, []string{"/etc/cdi at /etc/cdi read-only"}, "",
		mounting{"config.exclusivity=kernel", false},
		mounting{"config.devices.presets={nvme}", true},
		mounting{"config.profiles[0].nodeSelector.kind=gpus,config.profiles[0].devices.presets={gpu}", true},
	)
}

// The host's sysfs is written to, and its mounts are read, only where the operator lets claims
// bind drivers.
func TestSysfsIsMountedToBindDrivers(t *testing.T) {
	checkMounts(t, []string{"/sys at /host/sys", "/proc at /host/proc read-only"}, "--bind-root=/host",
		mounting{"config.devices.presets={nvme}", false},
		mounting{"config.devices.presets={nvme},config.devices.bindDrivers=none", false},
		mounting{"config.devices.presets={nvme},config.devices.bindDrivers=class", true},
		mounting{"config.devices.presets={nvme},config.devices.bindDrivers=claim", true},
		mounting{"config.profiles[0].nodeSelector.kind=gpus,config.profiles[0].devices.presets={gpu},config.profiles[0].devices.bindDrivers=class", true},
	)
}

// CPUs are changed only where the operator allows it.
func TestFilesOfCPUsAreMountedToChangeThem(t *testing.T) {
	checkMounts(t, []string{
		"/sys/devices/system/cpu at /host/performance/sys/devices/system/cpu",
		"/proc/irq at /host/performance/proc/irq",
	}, "--performance-root=/host/performance",
		mounting{"config.zoneBy=l3", false},
		mounting{"config.performance.allow=none", false},
		mounting{"config.performance.allow=class", true},
		mounting{"config.performance.default.governor=powersave", true},
		mounting{"config.profiles[0].nodeSelector.kind=hpc,config.profiles[0].performance.allow=claim", true},
	)
}

// Ways of caches are given, and their use is counted, only where the operator says so.
// Cgroups are not writable there either.
func TestResctrlIsMountedToDivideOrMeasureCaches(t *testing.T) {
	checkMounts(t, []string{
		"/sys/fs at /host/fs HostToContainer", "/sys/fs/cgroup at /host/fs/cgroup read-only", "/proc at /host/proc read-only",
	}, "--resctrl=/host/fs/resctrl",
		mounting{"config.zoneBy=l3", false},
		mounting{"config.cache.os.ways=1,config.cache.guaranteed.ways=4", true},
		mounting{"config.cache.monitor=true", true},
		mounting{"config.profiles[0].nodeSelector.kind=db,config.profiles[0].cache.os.ways=1,config.profiles[0].cache.infra.ways=4", true},
	)
}

// Only an init container has the rights to mount resctrl, and only if both values say so.
func TestResctrlIsMountedOnlyIfAsked(t *testing.T) {
	const divided = "config.cache.os.ways=1,config.cache.guaranteed.ways=4"
	for set, want := range map[string]string{
		divided:            "",
		"cache.mount=true": "",
		divided + ",cache.mount=true,seLinuxOptions.mount.type=spc_t":   "[--host-proc=/host/proc]",
		divided + ",cache.mount=true,cache.mountOptions={mba_MBps,cdp}": "[--host-proc=/host/proc --options=mba_MBps,cdp]",
	} {
		pod := object[appsv1.DaemonSet](t, mustRender(t, set), "DaemonSet").Spec.Template.Spec
		if want == "" {
			if len(pod.InitContainers) != 1 {
				t.Errorf("%s: init containers %v", set, pod.InitContainers)
			}
			continue
		}
		mount := pod.InitContainers[0]
		if got := fmt.Sprint(mount.Args); mount.Name != "mount" || got != want {
			t.Errorf("%s: container %s with %s, want %s", set, mount.Name, got, want)
		}
		if diff := cmp.Diff([]string{"/proc at /host/proc read-only"}, mounts(pod, mount)); diff != "" {
			t.Errorf("%s: host paths (-want +got):\n%s", set, diff)
		}
		if added := fmt.Sprint(mount.SecurityContext.Capabilities.Add); added != "[SYS_ADMIN SYS_CHROOT SYS_PTRACE]" || pod.HostPID {
			t.Errorf("%s: capabilities %s, hostPID %t", set, added, pod.HostPID)
		}
	}
}

// TestHostPathsAreTheOnesTheDesignNames also holds the chart to one path on
// host and in container for what the runtime reads: CDI specs name the hook.
func TestHostPathsAreTheOnesTheDesignNames(t *testing.T) {
	for _, tc := range []struct {
		set  []string
		root string   // the kubelet's, which only the keeper has
		want []string // of daemon and probe
	}{
		{nil, "/var/lib/kubelet", nil},
		{[]string{"kubelet.root=/k", "kubelet.configFile=/etc/k.yaml"}, "/k", []string{"/etc/k.yaml at /host/kubelet-config.yaml read-only"}},
	} {
		pod := object[appsv1.DaemonSet](t, mustRender(t, tc.set...), "DaemonSet").Spec.Template.Spec
		state, registry := tc.root+"/plugins/dra.numa", tc.root+"/plugins_registry"
		tc.want = append(tc.want, state+" at "+state)
		daemon := append([]string{
			state + "-hook at " + state + "-hook read-only", registry + " at " + registry, "/var/run/cdi at /var/run/cdi",
			"/sys/fs/cgroup at /host/cgroup read-only",
			"/var/run/nri at /host/nri read-only", "keeper (no host path) at /run/dra-numa-keeper read-only", "token (no host path) at /var/run/secrets/kubernetes.io/serviceaccount read-only",
		}, tc.want...)
		slices.Sort(daemon)
		if diff := cmp.Diff(daemon, mounts(pod, pod.Containers[0])); diff != "" {
			t.Errorf("host paths with %q (-want +got):\n%s", tc.set, diff)
		}
		probe := append([]string{
			state + "-hook at " + state + "-hook", "/var/run/cdi at /var/run/cdi read-only", "/sys/fs/cgroup at /host/cgroup",
		}, tc.want...)
		slices.Sort(probe)
		if diff := cmp.Diff(probe, mounts(pod, pod.InitContainers[0])); diff != "" {
			t.Errorf("host paths of the probe with %q (-want +got):\n%s", tc.set, diff)
		}
		keeper := []string{"/sys/fs/cgroup at /host/cgroup", "/sys/devices/virtual/workqueue at /host/workqueue", tc.root + " at /host/kubelet read-only HostToContainer", state + " at " + state, "keeper (no host path) at /run/dra-numa-keeper"}
		slices.Sort(keeper)
		if diff := cmp.Diff(keeper, mounts(pod, pod.Containers[1])); diff != "" {
			t.Errorf("host paths of the keeper with %q (-want +got):\n%s", tc.set, diff)
		}
	}
}

// mounts lists the host paths of a container as "host path at mount path", sorted.
func mounts(pod corev1.PodSpec, container corev1.Container) (lines []string) {
	host := map[string]string{}
	for _, volume := range pod.Volumes {
		if volume.HostPath == nil {
			host[volume.Name] = volume.Name + " (no host path)"
			continue
		}
		host[volume.Name] = volume.HostPath.Path
	}
	for _, mount := range container.VolumeMounts {
		line := host[mount.Name] + " at " + mount.MountPath
		if mount.ReadOnly {
			line += " read-only"
		}
		if mount.MountPropagation != nil {
			line += " " + string(*mount.MountPropagation)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func TestDaemonRunsOnTaintedNodes(t *testing.T) {
	spec := object[appsv1.DaemonSet](t, mustRender(t), "DaemonSet").Spec
	if diff := cmp.Diff([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, spec.Template.Spec.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	for key, value := range spec.Selector.MatchLabels {
		if spec.Template.Labels[key] != value {
			t.Errorf("pod label %s = %q, selector wants %q", key, spec.Template.Labels[key], value)
		}
	}
}

// TestDeviceClassesAreTheDriversOwn: package deviceclasses tests its texts on
// what the driver publishes, so the chart has to install exactly those.
func TestDeviceClassesAreTheDriversOwn(t *testing.T) {
	want := map[string]string{}
	names, err := fs.Glob(deviceclasses.Manifests, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(deviceclasses.Manifests, name)
		if err != nil {
			t.Fatal(err)
		}
		want[strings.TrimSuffix(name, ".yaml")] = strings.TrimSpace(string(text))
	}
	got := map[string]string{}
	for _, document := range documents(mustRender(t)) {
		if class := decode[resourceapi.DeviceClass](t, document); class.Kind == "DeviceClass" {
			got[class.Name] = strings.TrimSpace(document)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("device classes (-package deviceclasses +chart):\n%s", diff)
	}
}
