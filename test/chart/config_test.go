package chart

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// TestConfigBecomesANodeConfig reads the ConfigMap as the daemon does.
func TestConfigBecomesANodeConfig(t *testing.T) {
	rendered := mustRender(t, `config.reservedCPUs=0-1\,8`, "config.reservedMemory=1Gi", "config.profiles[0].nodeSelector.pool=batch",
		"config.profiles[0].exclusivity=none", "config.profiles[0].reservedMemory=0")
	text := object[corev1.ConfigMap](t, rendered, "ConfigMap").Data["node.yaml"]
	config, err := deviceclasses.DecodeNodeConfig([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	all, batch := config.For(nil), config.For(map[string]string{"pool": "batch"})
	if all.ReservedCPUs != "0-1,8" || all.ReservedMemoryBytes() != 1<<30 || all.Exclusivity != "" || batch.ReservedMemoryBytes() != 0 || batch.Exclusivity != "none" {
		t.Errorf("%+v and %+v of\n%s", all, batch, text)
	}
	pod := object[appsv1.DaemonSet](t, rendered, "DaemonSet").Spec.Template
	daemon, probe := pod.Spec.Containers[0], pod.Spec.InitContainers[0]
	if !slices.Contains(daemon.Args, "--config=/config/node.yaml") || slices.Contains(probe.Args, "--config=/config/node.yaml") {
		t.Errorf("arguments %q of the daemon and %q of the probe", daemon.Args, probe.Args)
	}
	if !slices.Contains(mounts(pod.Spec, daemon), "config (no host path) at /config read-only") {
		t.Errorf("mounts %q", mounts(pod.Spec, daemon))
	}
	other := object[appsv1.DaemonSet](t, mustRender(t, "config.reservedCPUs=0-1"), "DaemonSet").Spec.Template
	if sum := pod.Annotations["dra.numa/config"]; len(sum) != 64 || sum == other.Annotations["dra.numa/config"] {
		t.Errorf("pods start again with another configuration by annotations %v and %v", pod.Annotations, other.Annotations)
	}
}

// TestEveryFieldOfANodeConfigIsAValue: the schema of the values repeats their names.
func TestEveryFieldOfANodeConfigIsAValue(t *testing.T) {
	fields := map[string][]string{
		"reservedCPUs":       {"=0-1"},
		"reservedMemory":     {"=1Gi"},
		"reservedHugepages":  {"[0].numaNodes=0-1", "[0].size=1Gi", "[0].amount=2Gi"},
		"reservedNodeMemory": {"[0].numaNodes=0-1", "[0].amount=2Gi"},
		"exclude":            {".zones[0]=numa-3", ".memoryOf=0-1", ".hugepages[0]=2Mi"},
		"exclusivity":        {"=none"},
		"cpuQuota":           {"=keep"},
		"zoneBy":             {"=l3"},
		"zoneOrder":          {"=spread"},
		"groups":             {"[0]=kafka"},
		"accounting":         {"=pod-requests"},
		"otherCPUDrivers":    {"[0]=cores.example.com"},
		"otherMemoryDrivers": {"[0]=cxl.example.com"},
		"numaNodeKeys":       {"[0]=fpga.example.com/numaNode"},
		"numaNodeLists":      {"=never"},
		"publishing":         {"=paused"},
		"devices":            {".presets[0]=gpu"},
		"cache":              {".os.ways=1", ".groups[0].name=dpdk", ".groups[0].cpus=2-3", ".groups[0].ways=2", ".guaranteed.ways=10"},
		"performance":        {".allow=class"},
	}
	if all := reflect.TypeFor[deviceclasses.NodeSettings]().NumField(); all != len(fields) {
		t.Errorf("settings have %d fields, of which this test knows %d", all, len(fields))
	}
	values := []string{"config.profiles[0].nodeSelector.a=b"}
	for field, settings := range fields {
		for _, setting := range settings {
			values = append(values, "config."+field+setting, "config.profiles[0]."+field+setting)
		}
	}
	text := object[corev1.ConfigMap](t, mustRender(t, values...), "ConfigMap").Data["node.yaml"]
	config, err := deviceclasses.DecodeNodeConfig([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for field := range fields {
		if config.Profile(field, map[string]string{"a": "b"}) == "" {
			t.Errorf("%s is not in\n%s", field, text)
		}
	}
}

// TestEverySettingIsInOnePlace: the daemon would refuse both.
func TestEverySettingIsInOnePlace(t *testing.T) {
	profile := func(setting string) string { return "config.profiles[1]." + setting }
	for _, row := range []struct{ value, setting, want string }{
		{"reservedCPUs=0", "config.reservedCPUs=1-2", "reservedCPUs is in config as well: set one of them"},
		{"reservedCPUs=0", profile("reservedCPUs=1-2"), "reservedCPUs is in config as well: set one of them"},
		{"reservedMemory=1Gi", profile("reservedMemory=1Gi"), "reservedMemory is in config as well: set one of them"},
		{"exclusivity=none", "config.exclusivity=kernel", "exclusivity is in config as well: set one of them"},
		{"exclusivity=auto", "config.exclusivity=kernel", ""},
		{"reservedCPUs=0", "config.exclusivity=kernel", ""},
		{"reservedCPUs=", "config.zoneBy=die", "zoneBy"},
		{"reservedCPUs=", "config.profiles[2].reservedCPUs=1", "nodeSelector"},
	} {
		_, stderr, err := render(t, row.value, row.setting, "config.profiles[0].nodeSelector.a=b", "config.profiles[1].nodeSelector.c=d")
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(stderr, row.want)) {
			t.Errorf("%s %s: %v %s, want %q", row.value, row.setting, err, stderr, row.want)
		}
	}
	if strings.Contains(mustRender(t), "kind: ConfigMap\n") {
		t.Error("a chart without config has a ConfigMap")
	}
}
