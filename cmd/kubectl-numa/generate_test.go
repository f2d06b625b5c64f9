package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// exampleLines are the example commands in the help of a command, without the program's
// name.
func exampleLines(t *testing.T, args ...string) (lines [][]string) {
	t.Helper()
	for line := range strings.Lines(mustCall(t, append(args, "--help")...)) {
		if rest, isExample := strings.CutPrefix(strings.TrimSpace(line), "kubectl numa "+args[0]+" "+args[1]+" "); isExample && !strings.Contains(line, "[flags]") {
			lines = append(lines, append(args[:len(args):len(args)], strings.Fields(rest)...))
		}
	}
	if len(lines) < 2 {
		t.Fatalf("the help of %q has %d examples", args, len(lines))
	}
	return lines
}

// gpuManifests returns a slice of another driver with these devices, and their class.
func gpuManifests(devices ...string) string {
	const driver = "gpu.example.com"
	return object.SliceText(driver, "gpus", "["+strings.Join(devices, ", ")+"]") +
		object.ClassText(driver, fmt.Sprintf("device.driver == %q", driver))
}

// ownGPUs is a slice of this driver with GPUs on these NUMA nodes, two of which are one
// socket.
func ownGPUs(nodes ...int) string {
	var devices []string
	for i, node := range nodes {
		devices = append(devices, fmt.Sprintf("{name: gpu-%d, attributes: {kind: {string: gpu}, socket: {int: %d}, resource.kubernetes.io/numaNode: {int: %d}}}", i, node/2, node))
	}
	return object.SliceText(deviceclasses.DriverName, "own-gpus", "["+strings.Join(devices, ", ")+"]")
}

// nodeFiles are a Node, the slices of a generated machine for it, and a device of another
// driver on each NUMA node.
func nodeFiles(t *testing.T, preset string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var devices []string
	for node := range 2 {
		devices = append(devices, fmt.Sprintf("{name: gpu-%[1]d, attributes: {resource.kubernetes.io/numaNode: {int: %[1]d}}}", node))
	}
	for name, text := range map[string]string{
		"own-gpus.yaml": ownGPUs(0, 1), "gpu.yaml": testfiles.Read(t, "../../deviceclasses/gpu.dra.numa.yaml"),
		"node.yaml":   "apiVersion: v1\nkind: Node\nmetadata: {name: worker-1}\n",
		"slices.yaml": mustCall(t, "generate", "slices", "--node-name", "worker-1", "--preset", preset),
		"gpus.yaml":   gpuManifests(devices...),
		"zone.yaml":   mustCall(t, "generate", "class", "zone.dra.numa"),
	} {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// machineFiles are Nodes with the slices of a known machine that publishes all its GPUs,
// network cards and drives, and the classes of the chart.
func machineFiles(t *testing.T, preset, zoneBy string, nodes int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	config := filepath.Join(t.TempDir(), "config.yaml")
	testfiles.Write(t, config, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\ndevices: {presets: [gpu, nic, nvme]}\nzoneBy: "+zoneBy+"\n")
	testfiles.Write(t, filepath.Join(dir, "classes.yaml"), mustCall(t, "generate", "classes"))
	for i := range nodes {
		name := fmt.Sprintf("worker-%d", i+1)
		testfiles.Write(t, filepath.Join(dir, name+".yaml"), mustCall(t, "generate", "slices", "--node-name", name, "--preset", preset, "--config", config)+
			"---\napiVersion: v1\nkind: Node\nmetadata: {name: "+name+"}\n")
	}
	return dir
}

// cacheManifests are a zone in a cache, a pool of this cache, and the class of caches.
var cacheManifests = object.SliceText(deviceclasses.DriverName, "caches", `
  - name: numa-8
    allowMultipleAllocations: true
    attributes: {kind: {string: zone}, l3: {int: 8}}
    capacity: {cpu: {value: 64}, memory: {value: 64Gi}}
  - name: cache-8-guaranteed
    allowMultipleAllocations: true
    attributes: {kind: {string: cache}, l3: {int: 8}, pool: {string: guaranteed}}
    capacity: {ways: {value: 10}, classes: {value: 8}, bandwidthPercent: {value: 800}}`) +
	object.ClassText("cache.dra.numa", `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "cache"`)

// podFor is a pod that uses the claim or template with this name.
func podFor(use, name string) string {
	field := map[string]string{"claim": "resourceClaimName", "template": "resourceClaimTemplateName"}[use]
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: c, %s: %s}]
  containers: [{name: main, resources: {claims: [{name: c}]}}]
`, field, name)
}

// lint finds nothing in what the examples of the help generate, and the scheduler places
// a pod that uses it, or all pods that it has.
func TestGeneratedExamplesAreCleanAndPlaced(t *testing.T) {
	for _, use := range []string{"claim", "template", "pod", "deployment", "statefulset", "job"} {
		for _, line := range exampleLines(t, "generate", use) {
			t.Run(strings.Join(line[1:], " "), func(t *testing.T) {
				dir := nodeFiles(t, "intel-2s-snc2")
				if i := slices.Index(line, "--preset"); i > 0 {
					dir = machineFiles(t, line[i+1], "numa", 1)
				}
				if slices.Contains(line, "--zone-by") {
					dir = machineFiles(t, "epyc-2s-nps4", "l3", 1)
				}
				manifest := mustCall(t, line...)
				if again := mustCall(t, line...); again != manifest {
					t.Errorf("a second time it is\n%s", again)
				}
				testfiles.Write(t, filepath.Join(dir, "generated.yaml"), manifest)
				if text := mustCall(t, "lint", "-f", dir); text != "" {
					t.Errorf("lint says\n%sof\n%s", text, manifest)
				}
				pods := 1
				if use == "claim" || use == "template" {
					testfiles.Write(t, filepath.Join(dir, "pod.yaml"), podFor(use, line[2]))
				} else if i := slices.Index(line, "--replicas"); i > 0 {
					pods, _ = strconv.Atoi(line[i+1])
				}
				if slices.Contains(line, "--ways") {
					testfiles.Write(t, filepath.Join(dir, "cache.yaml"), cacheManifests)
				}
				var placed struct{ Pods []struct{ Node string } }
				if err := json.Unmarshal([]byte(mustCall(t, "simulate", "-f", dir, "-o", "json")), &placed); err != nil {
					t.Fatal(err)
				}
				if len(placed.Pods) != pods || slices.ContainsFunc(placed.Pods, func(p struct{ Node string }) bool { return p.Node != "worker-1" }) {
					t.Errorf("simulate places %+v, want %d pods", placed, pods)
				}
			})
		}
	}
}

func TestGeneratedClassesSelectWhatTheySay(t *testing.T) {
	for class, want := range map[string]struct{ preset, device string }{
		"hybrid --core-type mixed --set partition=isolated": {"hybrid-laptop", "worker-1/numa-0"},
		"cxl --memory-tier 22 --set memoryPolicy=bind":      {"cxl-expander", "worker-1/numa-2"},
		"second --socket 1 --exclusivity kernel":            {"cxl-expander", "worker-1/numa-1"},
		"third --numa-node 2 --set mixed=true":              {"cxl-expander", "worker-1/numa-2"},
	} {
		dir := nodeFiles(t, want.preset)
		args := strings.Fields(class)
		testfiles.Write(t, filepath.Join(dir, "class.yaml"), mustCall(t, append([]string{"generate", "class"}, args...)...))
		testfiles.Write(t, filepath.Join(dir, "claim.yaml"), mustCall(t, "generate", "claim", "c", "--class", args[0], "--memory", "1Gi"))
		if text := mustCall(t, "lint", "-f", dir); text != "" {
			t.Errorf("class %s: lint says\n%s", class, text)
		}
		testfiles.Write(t, filepath.Join(dir, "pod.yaml"), podFor("claim", "c"))
		if text := mustCall(t, "simulate", "-f", dir); !strings.Contains(text, want.device) {
			t.Errorf("class %s: want %s, simulate says\n%s", class, want.device, text)
		}
	}
}

// The scheduler takes the alternatives in order: one NUMA node, parts on one socket,
// parts on any NUMA nodes.
func TestFirstAvailableFallsBack(t *testing.T) {
	// Two sockets with two NUMA nodes of 4 CPUs each; 2 CPUs are reserved.
	for _, tc := range []struct{ cpus, parts, want string }{
		{"4", "2", "zone/one-node"}, {"6", "2", "zone/one-socket"}, {"8", "4", "zone/any"},
	} {
		dir := nodeFiles(t, "rig")
		testfiles.Write(t, filepath.Join(dir, "claim.yaml"), mustCall(t, "generate", "claim", "c", "--cpus", tc.cpus, "--parts", tc.parts, "--first-available", "one-node,one-socket,any"))
		testfiles.Write(t, filepath.Join(dir, "pod.yaml"), podFor("claim", "c"))
		if text := mustCall(t, "simulate", "-f", dir); !strings.Contains(text, tc.want) {
			t.Errorf("%s CPUs: want %s, simulate says\n%s", tc.cpus, tc.want, text)
		}
	}
}

// The GPU is on NUMA node 0, which has 2 CPUs left. NUMA node 1 is on the same socket.
func TestFirstAvailableIsAsNearToDevicesAsItCanBe(t *testing.T) {
	for _, tc := range []struct {
		args string
		gpus []int
		want []string
	}{
		{"--cpus 2", []int{0}, []string{"zone/one-node dra.numa/worker-1/numa-0"}},
		{"--cpus 4", []int{0}, []string{"zone/one-socket dra.numa/worker-1/numa-1"}},
		{"--cpus 4 --parts 2", []int{0}, []string{"zone/one-socket dra.numa/worker-1/numa-0", "zone/one-socket dra.numa/worker-1/numa-1"}},
		{"--cpus 4 --numa-node 2", []int{0}, []string{"zone/any dra.numa/worker-1/numa-2"}},
		// Two GPUs that are not on one socket: nothing is near both.
		{"--cpus 2 --device gpu.dra.numa", []int{0, 2}, []string{"zone/any dra.numa/worker-1/numa-0", "gpu-0", "gpu-1"}},
		{"--cpus 2 --device gpu.dra.numa", []int{2, 3}, []string{"zone/one-socket dra.numa/worker-1/numa-2", "gpu-0", "gpu-1"}},
	} {
		dir := nodeFiles(t, "rig")
		testfiles.Write(t, filepath.Join(dir, "own-gpus.yaml"), ownGPUs(tc.gpus...))
		args := strings.Fields("generate claim c --device gpu.dra.numa --first-available one-node,one-socket,any " + tc.args)
		testfiles.Write(t, filepath.Join(dir, "claim.yaml"), mustCall(t, args...))
		testfiles.Write(t, filepath.Join(dir, "pod.yaml"), podFor("claim", "c"))
		_, placed, _ := call("simulate", "-f", dir)
		placed = strings.Join(strings.Fields(placed), " ")
		for _, want := range tc.want {
			if !strings.Contains(placed, want) {
				t.Errorf("%s, GPUs on %v: want %q, simulate says\n%s", tc.args, tc.gpus, want, placed)
			}
		}
	}
}

// What flags write passes lint, and is placed on the machine that it is for.
func TestGeneratedWorkloadsArePlacedOnKnownMachines(t *testing.T) {
	always := []string{
		"--cpus 2 --memory 64Mi",
		"--cpus 2 --memory 64Mi --shares 2",
		"--cpus 4 --memory 64Mi --first-available one-node,any",
		"--cpus 2 --memory 64Mi --set partition=isolated,memoryPolicy=bind,cores=thread",
		"--memory 128Mi --set memoryPolicy=preferred",
	}
	const (
		gpuNear   = "--cpus 2 --memory 1Gi --device gpu.dra.numa --same node"
		gpuFar    = "--cpus 2 --memory 1Gi --device gpu.dra.numa --first-available one-node,one-socket,any"
		nicDrive  = "--cpus 2 --memory 1Gi --device nic.dra.numa --device nvme.dra.numa --same socket"
		apart     = "--cpus 2 --memory 512Mi --shares 2 --apart"
		gigantic  = "--cpus 2 --memory 1Gi --hugepages 1Gi=1Gi"
		large     = "--cpus 2 --memory 64Mi --hugepages 2Mi=4Mi"
		cacheZone = "--cpus 2 --memory 64Mi --zone-by l3"
	)
	for _, row := range []struct {
		preset, zoneBy string
		flags          []string
	}{
		{"rig", "numa", []string{large, apart, "--cpus 2 --memory 64Mi --device nic.dra.numa --same node"}},
		{"rig", "l3", []string{cacheZone, cacheZone + " --shares 2 --apart", cacheZone + " --hugepages 2Mi=4Mi --set memoryPolicy=bind,partition=isolated"}},
		{"intel-2s", "numa", []string{gigantic, large, gpuNear, gpuFar, nicDrive}},
		{"intel-2s-snc3", "numa", []string{apart + " --same socket", gpuNear, gpuFar}},
		{"epyc-2s-nps4", "numa", []string{gigantic, gpuNear, gpuFar, nicDrive}},
		{"epyc-2s-nps4", "l3", []string{
			cacheZone, cacheZone + " --hugepages 1Gi=1Gi", cacheZone + " --shares 2 --same socket", "--cpus 8 --zone-by l3 --memory 1Gi --device nvme.dra.numa --same node",
		}},
		{"epyc-mi300x", "numa", []string{gpuNear, gpuFar, apart}},
		{"dgx-h100", "numa", []string{
			gigantic, gpuNear,
			"--device gpu.dra.numa --device nic.dra.numa --pair --preset dgx-h100",
			"--cpus 8 --memory 8Gi --device gpu.dra.numa=4 --device nic.dra.numa=4 --pair --preset dgx-h100",
			"--cpus 8 --memory 8Gi --shares 2 --device gpu.dra.numa=8 --device nic.dra.numa=8 --pair --preset dgx-h100",
			"--cpus 8 --memory 8Gi --device gpu.dra.numa=2 --device nic.dra.numa=2 --device nvme.dra.numa=2 --pair --preset dgx-h100",
		}},
		{"grace-hopper", "numa", []string{gpuNear, nicDrive}},
		{"hybrid-laptop", "numa", []string{"--cpus 2 --memory 1Gi --core-type mixed", "--device nvme.dra.numa"}},
		{"cxl-expander", "numa", []string{apart, "--memory 1Gi --memory-tier 22"}},
		{"sparse-nodes", "numa", []string{apart}},
		{"no-numa", "numa", []string{large}},
	} {
		t.Run(row.preset+" by "+row.zoneBy, func(t *testing.T) {
			flags := row.flags
			if row.zoneBy == "numa" {
				flags = append(slices.Clone(always), flags...)
			}
			dir := machineFiles(t, row.preset, row.zoneBy, len(flags)) // a node for each, so that none takes what another needs
			for i, line := range flags {
				kind := []string{"pod", "deployment", "statefulset", "job"}[i%4]
				args := fmt.Sprintf("generate %s w%d --image example.com/app:1 %s", kind, i, line)
				testfiles.Write(t, filepath.Join(dir, fmt.Sprintf("w%d.yaml", i)), mustCall(t, strings.Fields(args)...))
			}
			if text := mustCall(t, "lint", "-f", dir); text != "" {
				t.Errorf("lint says\n%s", text)
			}
			var placed struct {
				Pods          []struct{}
				Unschedulable []json.RawMessage
			}
			_, text, _ := call("simulate", "-f", dir, "-o", "json")
			if err := json.Unmarshal([]byte(text), &placed); err != nil {
				t.Fatal(err)
			}
			if len(placed.Pods) != len(flags) {
				t.Errorf("simulate places %d of %d pods, and not\n%s\nflags are %q", len(placed.Pods), len(flags), placed.Unschedulable, flags)
			}
		})
	}
}

// What generate writes has the meaning of the manifest for users to copy.
func TestGeneratedClaimIsThatOfTheDemo(t *testing.T) {
	var got, want struct {
		Spec resourceapi.ResourceClaimTemplateSpec
	}
	text := mustCall(t, strings.Fields("generate template gpu-nearest --cpus 8 --memory 32Gi --device gpu.dra.numa --first-available one-node,one-socket,any")...)
	text = strings.NewReplacer("one-node", "same-node", "one-socket", "same-socket", "name: any", "name: anywhere", "gpu-0", "gpu",
		"          allocationMode: ExactCount\n          count: 1\n", "").Replace(text)
	demo, _, _ := strings.Cut(testfiles.Read(t, "../../demo/devices/gpu-nearest.yaml"), "\n---\n")
	for text, into := range map[string]any{text: &got, demo: &want} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-demo +generated):\n%s\n%s", diff, text)
	}
}

// Other drivers do not publish the socket.
func TestSocketOfOthersDevicesIsNoted(t *testing.T) {
	const want = "kubectl-numa: note: if class g selects devices of another driver, the claim gets none: only devices of this driver have the attribute dra.numa/socket\n"
	for args, want := range map[string]string{
		"--same socket --device g":                               want,
		"--same socket --device gpu.dra.numa":                    "",
		"--same node --device g":                                 "",
		"--first-available one-node,one-socket --device g":       want,
		"--first-available one-node,any --device g --parts 1":    "",
		"--first-available one-node,one-socket,any --memory 2Gi": "",
	} {
		exitCode, stdout, stderr := call(strings.Fields("generate claim c --cpus 2 " + args)...)
		if exitCode != exitDone || stderr != want || stdout == "" {
			t.Errorf("%s: exit code %d, stderr %q, want %q", args, exitCode, stderr, want)
		}
	}
}

// The examples in the documentation are the output of the commands.
func TestDocumentedExamplesSayWhatTheySay(t *testing.T) {
	page := testfiles.Read(t, "../../docs/kubectl-numa.md")
	for _, want := range []string{
		"$ kubectl numa suggest-evictions pod urgent -f cluster/\n" + suggestion,
		"$ kubectl numa taint worker-1/numa-1 -f cluster/\n" + drainRule,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/kubectl-numa.md lacks\n%s", want)
		}
	}
}

// generatedConfigs returns the configurations of a class, claim or template that generate
// makes with these arguments, in JSON.
func generatedConfigs(t *testing.T, args string) (configs [][]byte) {
	t.Helper()
	var object struct {
		Spec struct {
			Config  []resourceapi.DeviceClaimConfiguration
			Devices resourceapi.DeviceClaim
			Spec    resourceapi.ResourceClaimSpec
		}
	}
	if err := json.Unmarshal([]byte(mustCall(t, strings.Fields("generate "+args+" -o json")...)), &object); err != nil {
		t.Fatal(err)
	}
	for _, config := range slices.Concat(object.Spec.Config, object.Spec.Devices.Config, object.Spec.Spec.Devices.Config) {
		configs = append(configs, config.Opaque.Parameters.Raw)
	}
	return configs
}

// expectAllFields fails for each field that has no value. Only a class can lock fields.
func expectAllFields(t *testing.T, made string, value reflect.Value) {
	t.Helper()
	for i := range value.NumField() {
		name, field := value.Type().Field(i).Name, value.Field(i)
		if name == "PerformanceSettings" {
			expectAllFields(t, made, field)
			continue
		}
		if locks := name == "Locked" && !strings.HasPrefix(made, "class"); field.IsZero() != locks {
			t.Errorf("%s: nothing says %s", made, name)
		}
	}
}

// --set can set every field of a PerformanceConfig.
func TestGenerateSaysAllOfAPerformanceConfig(t *testing.T) {
	const flags = "--set minFrequency=base,maxFrequency=max,governor=performance,energyPreference=performance --set minUncoreFrequency=max,idleLatency=0,interrupts=own"
	for _, made := range []string{"class c --locked partition,idleLatency", "claim c --cpus 4", "template c --cpus 4 --set partition=none"} {
		configs := generatedConfigs(t, made+" "+flags)
		if want := 1 + strings.Count(made, "partition"); len(configs) != want {
			t.Fatalf("%s: %d configurations, want %d", made, len(configs), want)
		}
		config, err := deviceclasses.PerformanceConfig{}.DecodeOver(configs[len(configs)-1])
		if err != nil {
			t.Fatal(err)
		}
		expectAllFields(t, made, reflect.ValueOf(config))
		if *config.IdleLatency != 0 || config.MaxFrequency != "max" || strings.HasPrefix(made, "class") != slices.Equal(config.Locked, []string{"idleLatency"}) {
			t.Errorf("%s: %+v", made, config)
		}
	}
}

// --set can set every field of a ZoneConfig.
func TestGenerateSaysAllOfAZoneConfig(t *testing.T) {
	const flags = "--set cores=one-thread-per-core,l3=require,placement=spread,coreType=efficient,partition=none,mixed=true,memoryPolicy=bind"
	for _, made := range []string{"class c --locked partition,mixed", "claim c --cpus 4", "template c --cpus 4"} {
		configs := generatedConfigs(t, made+" "+flags)
		if len(configs) != 1 {
			t.Fatalf("%s: %d configurations", made, len(configs))
		}
		config, err := deviceclasses.ZoneConfig{}.DecodeOver(configs[0])
		if err != nil {
			t.Fatal(err)
		}
		expectAllFields(t, made, reflect.ValueOf(config))
		if config.Cores != "one-thread-per-core" || config.L3 != "require" || config.Placement != "spread" {
			t.Errorf("%s: %+v", made, config)
		}
	}
}

// --set can set every field of a CacheConfig but the name of a request, which generate knows.
func TestGenerateSaysAllOfACacheConfig(t *testing.T) {
	for made, zones := range map[string][]string{"claim c --cpus 4": {""}, "template c --cpus 4 --shares 2": {"zone-0", "zone-1"}} {
		configs := generatedConfigs(t, made+" --ways 2 --set maxWays=5")
		if len(configs) != len(zones) {
			t.Fatalf("%s: %d configurations, want %d", made, len(configs), len(zones))
		}
		for i, zone := range zones {
			config, err := deviceclasses.CacheConfig{}.DecodeOver(configs[i])
			if err != nil || config.MaxWays != 5 || config.CPUs != zone {
				t.Errorf("%s: %+v, %v", made, config, err)
			}
		}
	}
}

const isolatedTemplate = `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: workers
  namespace: team-a
spec:
  spec:
    devices:
      config:
      - opaque:
          driver: dra.numa
          parameters:
            apiVersion: dra.numa/v1alpha1
            kind: ZoneConfig
            memoryPolicy: bind
            partition: isolated
        requests:
        - zone
      constraints:
      - matchAttribute: resource.kubernetes.io/numaNode
      requests:
      - exactly:
          capacity:
            requests:
              cpu: "4"
              hugepages1Gi: 2Gi
          deviceClassName: zone.dra.numa
          selectors:
          - cel:
              expression: device.driver == "dra.numa" && device.attributes["dra.numa"].?coreType.orValue("")
                == "standard"
        name: zone
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: gpu.example.com
        name: gpu-0
      - exactly:
          allocationMode: ExactCount
          count: 2
          deviceClassName: nic.example.com
        name: nic-0
`

func TestGeneratedManifestIsReadable(t *testing.T) {
	got := mustCall(t, strings.Fields("generate template workers -n team-a --cpus 4 --hugepages 1Gi=2Gi --set partition=isolated,memoryPolicy=bind "+
		"--core-type standard --device nic.example.com=2 --device gpu.example.com --same node")...)
	if diff := cmp.Diff(isolatedTemplate, got); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

// What comes after -- is the command's, even if it looks like a flag.
func TestGeneratedContainersRunACommand(t *testing.T) {
	for kind, field := range map[string]string{"pod": "{.items[1].spec.containers[0].command}", "job": "{.items[1].spec.template.spec.containers[0].command}"} {
		args := []string{"generate", kind, "p", "--image", "busybox:1.37", "--cpus", "2", "--memory", "64Mi", "-o", "jsonpath=" + field, "--", "sh", "-c", "sleep 1; echo --cpus"}
		if got := strings.TrimSpace(mustCall(t, args...)); got != `["sh","-c","sleep 1; echo --cpus"]` {
			t.Errorf("%s: command %s", kind, got)
		}
	}
}

// Requests of devices are named by class and number, and their names do not collide with
// those of shares.
func TestGeneratedRequestsHaveTheNamesOfTheirClasses(t *testing.T) {
	long := strings.Repeat("a", 63)
	for args, want := range map[string]string{
		"--cpus 2 --device gpu.example.com=2 --device nic.dra.numa": "zone nic-0 gpu-0",
		"--device gpu.example.com --device gpu.dra.numa":            "gpu-0 gpu-1",
		"--cpus 2 --shares 2 --device zone.example.com":             "zone-0 zone-1 zone-2",
		"--cpus 2 --ways 2 --device cache.example.com":              "zone cache cache-0",
		"--device " + long: long[:60] + "-0",
		"--cpus 2 --device g=3 --first-available one-node,any": "zone g-0 g-1 g-2",
	} {
		text := mustCall(t, append(strings.Fields("generate claim c "+args), "-o", "jsonpath={.spec.devices.requests[*].name}")...)
		if text = strings.TrimSpace(text); text != want {
			t.Errorf("%s: requests are %s, want %s", args, text, want)
		}
	}
}

// Each share has a cache of its own: a cache is for the CPUs of one request.
func TestGeneratedCachesAreThoseOfTheShares(t *testing.T) {
	var got struct{ Spec resourceapi.ResourceClaimSpec }
	text := mustCall(t, strings.Fields("generate claim c --cpus 4 --memory 1Gi --shares 2 --same socket --cache-class gold.dra.numa --bandwidth 20000MBps")...)
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	const want = `
requests:
- {name: zone-0, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4, memory: 1Gi}}}}
- {name: zone-1, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4, memory: 1Gi}}}}
- {name: cache-0, exactly: {deviceClassName: gold.dra.numa, capacity: {requests: {bandwidthMBps: "20000"}}}}
- {name: cache-1, exactly: {deviceClassName: gold.dra.numa, capacity: {requests: {bandwidthMBps: "20000"}}}}
constraints:
- {requests: [zone-0, cache-0], matchAttribute: dra.numa/l3}
- {requests: [zone-1, cache-1], matchAttribute: dra.numa/l3}
- {requests: [zone-0, zone-1], matchAttribute: dra.numa/socket}
config:
- {requests: [cache-0], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: CacheConfig, cpus: zone-0}}}
- {requests: [cache-1], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: CacheConfig, cpus: zone-1}}}`
	testfiles.SameJSON(t, "the claim", got.Spec.Devices, object.Parse[resourceapi.DeviceClaim](t, want))
	file := filepath.Join(t.TempDir(), "claim.yaml")
	testfiles.Write(t, file, text)
	if text := mustCall(t, "lint", "-f", file); text != "" {
		t.Errorf("lint says\n%s", text)
	}
}

func TestGeneratedMachineIsReadAsDeclared(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "new", "machine"), t.TempDir()}
	for _, dir := range dirs {
		args := strings.Fields("generate machine " + dir + " --make amd --sockets 1 --nodes-per-socket 2 --l3s-per-socket 4 --cores-per-socket 16 --memory 8Gi --hugepages 2Mi=64,1Gi=1")
		if text := mustCall(t, args...); text != "" {
			t.Errorf("it says %q", text)
		}
		exitCode, _, stderr := call(args...)
		if exitCode != exitUsage || !strings.Contains(stderr, "sys exists already: want a folder without sys and proc") {
			t.Errorf("into the same folder: exit code %d, %s", exitCode, stderr)
		}
	}
	if diff := cmp.Diff(testfiles.Tree(t, dirs[0]), testfiles.Tree(t, dirs[1])); diff != "" {
		t.Errorf("two times is not the same:\n%s", diff)
	}
	text := mustCall(t, "topology", "--root", dirs[0], "-o", "json")
	if strings.Count(text, `"distances"`) != 2 || strings.Count(text, `"siblings"`) != 32 || strings.Count(text, `"1Gi"`) != 2 {
		t.Errorf("topology is\n%s", text)
	}
}

// generate slices prints the same as slices for a folder, and the same for a preset as
// for a folder with the preset.
func TestGenerateSlicesIsSlices(t *testing.T) {
	dir := sample.Folder(t, "epyc-2s-nps4")
	want := mustCall(t, "slices", "--node-name", "n", "--root", dir)
	for _, args := range []string{"--root " + dir, "--preset epyc-2s-nps4"} {
		if got := mustCall(t, strings.Fields("generate slices --node-name n "+args)...); got != want {
			t.Errorf("%s: (-want +got)\n%s", args, cmp.Diff(want, got))
		}
	}
	if len(presetNames()) != len(fake.Presets()) {
		t.Errorf("presets are %q", presetNames())
	}
}

func TestNonsenseToGenerateIsOneUsageLine(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"generate nothing":                                                                                   `unknown command "nothing", allowed are claim, class, classes, deployment, job, machine, node, pod, pools, slices, statefulset, template`,
		"generate machine":                                                                                   `want DIR, not ""`,
		"generate machine " + dir + " --preset x":                                                            `--preset "x": there is no such machine, allowed are rig, `,
		"generate machine " + dir + " --preset rig --sockets 2":                                              "--preset rig declares the whole machine: remove --sockets",
		"generate machine " + dir + " --memory much":                                                         `--memory: "much": want an amount such as 16Gi`,
		"generate machine " + dir + " --hugepages 2Mi=0":                                                     "--hugepages 2Mi=0: want a size and 1 page or more, such as 2Mi=512",
		"generate machine " + dir + " --threads 3":                                                           "fake machine: Threads is 3, allowed are 1-2",
		"generate slices --node-name n --root / --preset rig":                                                "--root names a machine, and other flags declare one: want only one of the two",
		"generate class A_b":                                                                                 `name "A_b": a lowercase RFC 1123 subdomain must consist of`,
		"generate class c --core-type fast":                                                                  `invalid argument "fast" for "--core-type" flag: allowed are `,
		"generate class c --set cores=half":                                                                  `--set cores: "half", allowed are whole, thread, one-thread-per-core`,
		"generate claim c --cpus 1 --set l3=two":                                                             `--set l3: "two", allowed are prefer, require, any`,
		"generate template c --cpus 1 --set placement=up":                                                    `--set placement: "up", allowed are pack, spread, distribute`,
		"generate class c --socket -2":                                                                       "socket -2: want 0 or more",
		"generate class c --set mixed=true,partition=root":                                                   `mixed with partition "root": mixed containers also run on shared CPUs, which are in no partition`,
		"generate pod p --image a --cpus 2 sleep infinity":                                                   `want NAME, not "p sleep infinity"; what the container runs comes after --`,
		"generate job --image a -- sleep infinity":                                                           `want NAME, not ""`,
		"generate claim c -- sleep":                                                                          `want NAME, not "c sleep"`,
		"generate claim":                                                                                     `want NAME, not ""`,
		"generate claim c":                                                                                   "nothing is requested: want cpus, memory, hugepages or devices",
		"generate claim c -n A_b --cpus 1":                                                                   `namespace "A_b": a lowercase RFC 1123 label must consist of`,
		"generate claim c --cpus 0":                                                                          "--cpus 0: want 1 or more",
		"generate claim c --memory much":                                                                     `--memory "much": want an amount such as 16Gi`,
		"generate claim c --hugepages 2Mi=x":                                                                 "--hugepages 2Mi=x: want an amount such as 2Mi=512Mi",
		"generate claim c --hugepages 2M=2Mi":                                                                `2Mi of hugepages of 2M: want whole pages`,
		"generate claim c --hugepages 2Mi=3Mi":                                                               "3Mi of hugepages of 2Mi: want whole pages",
		"generate claim c --hugepages big=3Mi":                                                               `hugepages of "big": want a size such as 2Mi or 1Gi`,
		"generate claim c --cpus 1 --shares 0":                                                               "0 shares: want 1 or more",
		"generate claim c --cpus 1 --apart":                                                                  "a single share cannot be apart: want 2 shares or more",
		"generate claim c --cpus 1 --shares 2 --apart --same node":                                           "shares cannot be apart and on the same NUMA node: want one of the two",
		"generate claim c --cpus 1 --same node":                                                              "a single share or device is always on the same node: want 2 or more",
		"generate claim c --cpus 4 --first-available one-node,one-socket --device g=17":                      "17 devices with these alternatives: want 16 or fewer",
		"generate claim c --cpus 4 --first-available one-node,any --device g=2147483647":                     "2147483647 devices with these alternatives: want 31 or fewer",
		"generate claim c --cpus 4 --first-available one-node,any --device g --parts 0":                      "0 parts: want 1 or more",
		"generate claim c --memory 1Gi --set governor=performance":                                           `frequencies, idle states and interrupts are those of CPUs: want cpus as well`,
		"generate claim c --device g --set interrupts=away":                                                  `there is no share of a NUMA node: want cpus, memory or hugepages as well`,
		"generate claim c --cpus 1 --set minFrequency=fast":                                                  `--set minFrequency: "fast", want a frequency such as 2.4GHz`,
		"generate class c --set minFrequency=3GHz --set maxFrequency=2GHz":                                   `--set minFrequency: "3GHz", allowed are frequencies up to maxFrequency 2GHz`,
		"generate class c --set idleLatency=-1":                                                              `--set idleLatency: `,
		"generate class c --set interrupts=none":                                                             `--set interrupts: "none", allowed are away, own`,
		"generate class c --set speed=9":                                                                     `--set speed: there is no such field, allowed are cores, l3, placement, coreType, partition, mixed, memoryPolicy, minFrequency, maxFrequency, governor, energyPreference, minUncoreFrequency, idleLatency, interrupts, maxWays`,
		"generate class c --set cores":                                                                       `--set "cores": want field=value`,
		"generate class c --set mixed=perhaps":                                                               `--set mixed: "perhaps", allowed are true, false`,
		"generate class c --set idleLatency=soon":                                                            `--set idleLatency: "soon", want a whole number`,
		"generate class c --set maxWays=4":                                                                   "a class of NUMA nodes has no caches: only claims have settings of caches",
		"generate claim c --cpus 4 --set maxWays=4":                                                          "maxWays is a setting of a cache: want ways, a bandwidth or a class of caches as well",
		"generate claim c --cpus 4 --ways 5 --set maxWays=4":                                                 "maxWays: 4, allowed are the 5 ways that the request asks for, or more",
		"generate claim c --cpus 4 --set cpus=zone":                                                          "--set cpus: there is no such field, allowed are cores, ",
		"generate class c --locked speed":                                                                    `locked "speed", allowed are cores, l3, placement, coreType, partition, mixed, memoryPolicy, minFrequency, `,
		"generate claim c --ways 4":                                                                          "a cache is for CPUs: want cpus as well",
		"generate claim c --memory 1Gi --cache-class gold.dra.numa":                                          "a cache is for CPUs: want cpus as well",
		"generate claim c --cpus 1 --ways 0":                                                                 "--ways 0: want 1 or more",
		"generate claim c --cpus 1 --ways 65":                                                                "65 ways: want 1 to 64",
		"generate claim c --cpus 1 --bandwidth 40":                                                           `--bandwidth "40": want a percentage such as 40%, or an amount such as 20000MBps`,
		"generate claim c --cpus 1 --bandwidth 0%":                                                           `--bandwidth "0%": want a percentage such as 40%, or an amount such as 20000MBps`,
		"generate claim c --cpus 1 --bandwidth 101%":                                                         "a bandwidth of 101%: want 1% to 100%",
		"generate claim c --cpus 4 --ways 4 --first-available one-node,any":                                  "a cache with 2 parts: a cache is for the CPUs of one NUMA node",
		"generate claim c --device g=0":                                                                      `--device "g=0": want CLASS or CLASS=NUMBER`,
		"generate claim c --cpus 1 --device g --pair --preset rig":                                           "pairs: want devices of 2 classes or more, and as many of each class",
		"generate claim c --cpus 1 --device g --preset rig":                                                  "--preset is for --pair: set --pair as well",
		"generate claim c --cpus 1 --device g -f x":                                                          "--filename is for --pair: set --pair as well",
		"generate claim c --device gpu.dra.numa --device nic.dra.numa=2 --pair --preset rig":                 "pairs: want devices of 2 classes or more, and as many of each class",
		"generate claim c --device gpu.dra.numa --device nic.dra.numa --pair --preset rig -f x":              "--filename and --preset: set only one of them",
		"generate claim c --device gpu.dra.numa --device nic.dra.numa --pair --preset x":                     `--preset "x": there is no such machine, allowed are rig, `,
		"generate claim c --device gpu.dra.numa --device nic.dra.numa --pair --preset rig":                   "class gpu.dra.numa selects no device of the slices",
		"generate claim c --device gpu.dra.numa --device nic.dra.numa --pair --preset intel-2s":              "no PCIe root of the slices has devices of the classes gpu.dra.numa and nic.dra.numa: there are no pairs",
		"generate claim c --cpus 1 --device gpu.dra.numa=8 --device nic.dra.numa=8 --pair --preset dgx-h100": "8 pairs for a share: a NUMA node of the slices has 4 at most; want fewer pairs or more shares",
		"generate claim c --cpus 1 --device g=16 --device n=16 --pair --preset rig":                          "33 shares and devices in pairs: want 32 or fewer",
		"generate claim c --cpus 1 --shares 2 --device g=3 --device n=3 --pair --preset rig":                 "3 pairs cannot be divided among 2 shares",
		"generate claim c --cpus 1 --device g --device n --pair --same node --preset rig":                    "pairs are on the NUMA node of their share: want no alternatives, and nothing on the same node or socket",
		"generate claim c --memory 1Gi --zone-by l3":                                                         "a zone of a level-3 cache has only CPUs: want cpus as well",
		"generate claim c --cpus 2 --zone-by l3 --first-available one-node,any":                              "alternatives are for zones with memory, not for those of level-3 caches: want no alternatives",
		"generate claim c --cpus 2 --zone-by socket":                                                         `invalid argument "socket" for "--zone-by" flag: allowed are l3`,
		"generate pod p --image i --hugepages 1Gi=1Gi":                                                       "a pod with hugepages must request cpus or memory: want one of them as well",
		"generate claim c --device g --set mixed=true":                                                       `there is no share of a NUMA node: want cpus, memory or hugepages as well`,
		"generate claim c --cpus 4 --parts 2":                                                                "--parts 2: want --first-available as well",
		"generate claim c --cpus 4 --first-available any":                                                    `alternatives "any": want one-node and then one or both of one-socket, any`,
		"generate claim c --cpus 4 --first-available one-node":                                               `alternatives "one-node": want one-node and then one or both of one-socket, any`,
		"generate claim c --cpus 4 --first-available one-node,any --shares 2":                                "alternatives are only for a single share: want no other shares, and nothing on the same node or socket",
		"generate claim c --cpus 3 --first-available one-node,any":                                           "3 CPUs cannot be divided into 2 equal parts",
		"generate claim c --hugepages 1Gi=3Gi --first-available one-node,any":                                "3Gi of hugepages of 1Gi cannot be divided into 2 equal parts",
		"generate claim c --cpus 4 --parts 1 --first-available one-node,any":                                 "1 parts: want 2 or more",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// GPUs of NVIDIA's driver do not publish their NUMA node, and cards of dranet publish it
// under a name of their own: the card is between the GPU and the share.
func TestPairsOfOtherDriversAreAChain(t *testing.T) {
	dir := machineFiles(t, "dgx-h100", "numa", 1)
	var gpus, cards []string
	for i := range 8 {
		root := fmt.Sprintf("resource.kubernetes.io/pcieRoot: {string: pci0000:%02d}", i)
		gpus = append(gpus, fmt.Sprintf("{name: gpu-%d, attributes: {%s}}", i, root))
		cards = append(cards, fmt.Sprintf("{name: eth%d, attributes: {dra.net/numaNode: {int: %d}, %s}}", 7-i, i/4, root))
	}
	testfiles.Write(t, filepath.Join(dir, "others.yaml"), object.SliceText("gpu.nvidia.com", "gpus", "["+strings.Join(gpus, ", ")+"]")+
		object.SliceText("dra.net", "cards", "["+strings.Join(cards, ", ")+"]")+
		object.ClassText("gpu.nvidia.com", `device.driver == "gpu.nvidia.com"`)+object.ClassText("dranet.example.com", `device.driver == "dra.net"`))
	text := mustCall(t, strings.Fields("generate pod trainer --image example.com/app:1 --cpus 8 --memory 8Gi --shares 2 --device gpu.nvidia.com=2 --device dranet.example.com=2 --pair -f "+dir)...)
	template, _, _ := strings.Cut(text, "\n---\n")
	var got struct {
		Spec resourceapi.ResourceClaimTemplateSpec
	}
	if err := yaml.Unmarshal([]byte(template), &got); err != nil {
		t.Fatal(err)
	}
	const want = `
requests:
- {name: zone-0, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 8, memory: 8Gi}}}}
- {name: zone-1, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 8, memory: 8Gi}}}}
- {name: gpu-0, exactly: {deviceClassName: gpu.nvidia.com}}
- {name: dranet-0, exactly: {deviceClassName: dranet.example.com}}
- {name: gpu-1, exactly: {deviceClassName: gpu.nvidia.com}}
- {name: dranet-1, exactly: {deviceClassName: dranet.example.com}}
constraints:
- {requests: [zone-0, zone-1], distinctAttribute: resource.kubernetes.io/numaNode}
- {requests: [gpu-0, dranet-0], matchAttribute: resource.kubernetes.io/pcieRoot}
- {requests: [gpu-1, dranet-1], matchAttribute: resource.kubernetes.io/pcieRoot}
- {requests: [zone-0, dranet-0], matchAttribute: dra.net/numaNode}
- {requests: [zone-1, dranet-1], matchAttribute: dra.net/numaNode}`
	testfiles.SameJSON(t, "the claim", got.Spec.Spec.Devices, object.Parse[resourceapi.DeviceClaim](t, want))
	testfiles.Write(t, filepath.Join(dir, "generated.yaml"), text)
	if text := mustCall(t, "lint", "-f", dir); text != "" {
		t.Errorf("lint says\n%s", text)
	}
	placed := strings.Join(strings.Fields(mustCall(t, "simulate", "-f", dir)), " ")
	for _, want := range []string{"zone-0 dra.numa/worker-1/numa-0", "gpu-0 gpu.nvidia.com/gpus/gpu-0", "dranet-0 dra.net/cards/eth7", "zone-1 dra.numa/worker-1/numa-1", "gpu-1 gpu.nvidia.com/gpus/gpu-4", "dranet-1 dra.net/cards/eth3"} {
		if !strings.Contains(placed, want) {
			t.Errorf("simulate does not say %q, but\n%s", want, placed)
		}
	}
}

func TestGenerateClassesPrintsThoseOfTheChart(t *testing.T) {
	exitCode, all, _ := call("generate", "classes", "-o", "name")
	if exitCode != 0 || strings.Count(all, "\n") < 13 {
		t.Errorf("exit code %d, classes\n%s", exitCode, all)
	}
	_, two, _ := call("generate", "classes", "nic.dra.numa", "gpu.dra.numa", "-o", "name")
	if want := "deviceclass.resource.k8s.io/nic.dra.numa\ndeviceclass.resource.k8s.io/gpu.dra.numa\n"; two != want {
		t.Errorf("got\n%swant\n%s", two, want)
	}
	if exitCode, stdout, stderr := call("generate", "classes", "zone.dra.numa", "tpu"); exitCode != exitUsage || stdout != "" || !strings.Contains(stderr, `no DeviceClass "tpu", but bound.dra.numa, `) {
		t.Errorf("exit code %d, %s%s", exitCode, stdout, stderr)
	}
}

func TestNamesOfWorkloadsHaveTheirGroups(t *testing.T) {
	for kind, want := range map[string]string{"pod": "pod/a", "deployment": "deployment.apps/a", "statefulset": "statefulset.apps/a", "job": "job.batch/a"} {
		if text := mustCall(t, "generate", kind, "a", "--image", "example.com/app:1", "--cpus", "2", "-o", "name"); text != "resourceclaimtemplate.resource.k8s.io/a\n"+want+"\n" {
			t.Errorf("generate %s prints the names\n%s", kind, text)
		}
	}
}

// The Node of a machine has what its zones have, so that pods fit on both or on neither.
func TestGeneratedNodeFitsItsSlices(t *testing.T) {
	dir := t.TempDir()
	config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: 0-3\nreservedMemory: 128Mi\n")
	testfiles.Write(t, dir+"/node.yaml", mustCall(t, "generate", "node", "worker-1", "--preset", "rig", "--config", config, "--kwok"))
	testfiles.Write(t, dir+"/slices.yaml", mustCall(t, "generate", "slices", "--node-name", "worker-1", "--preset", "rig", "--config", config))
	testfiles.Write(t, dir+"/classes.yaml", mustCall(t, "generate", "classes"))
	testfiles.Write(t, dir+"/pods.yaml", mustCall(t, "generate", "deployment", "work", "--image", "example.com/a:1", "--replicas", "4", "--cpus", "4", "--memory", "512Mi"))
	const want = `{"hugepages-1Gi":"0","hugepages-2Mi":"128Mi","memory":"3456Mi"}`
	text := mustCall(t, "generate", "node", "worker-1", "--preset", "rig", "--config", config, "-o", "json")
	var node corev1.Node
	if err := json.Unmarshal([]byte(text), &node); err != nil {
		t.Fatal(err)
	}
	delete(node.Status.Allocatable, corev1.ResourceCPU)
	delete(node.Status.Allocatable, corev1.ResourcePods)
	if got, _ := json.Marshal(node.Status.Allocatable); string(got) != want {
		t.Errorf("allocatable %s, want %s", got, want)
	}
	exitCode, stdout, stderr := call("simulate", "-f", dir, "-o", "jsonpath={.pods[*].claims[*].allocations[*].device}")
	if exitCode != exitFailed || stdout != "numa-1 numa-2 numa-3" {
		t.Errorf("exit code %d, zones %q, want one pod on each of the three zones with 4 CPUs: %s", exitCode, stdout, stderr)
	}
	_, _, stderr = call("generate", "node", "A_b", "--preset", "rig")
	if !strings.Contains(stderr, `NAME "A_b": `) {
		t.Errorf("a name that no Node can have: %s", stderr)
	}
}
