package scheduler

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
)

// advised is a claim that the scheduler cannot allocate on a node, what explain says of it,
// and the claim that explain advises, which it can.
type advised struct {
	devices        map[string]string // of the node, by the driver's name
	claim          string
	sentence, hint string // parts of what explain says
	better         string // empty if explain advises no claim
	class          string // the selector of class NAME-large, if the claim names it
}

// The drivers and classes of a case have its name, NAME, so that they are in nobody's way.
func adviceRows() map[string]advised {
	const (
		amount = "requestPolicy: {default: '0', validRange: {min: '0', step: '1'}}"
		zone   = "allowMultipleAllocations: true, attributes: {kind: {string: zone}, resource.kubernetes.io/numaNode: {int: 0}, dra.net/numaNode: {int: 0}}"
		asks   = "{name: %s, exactly: {deviceClassName: NAME-zone, capacity: {requests: {%s}}}}"
		of     = "{name: %[1]s, exactly: {deviceClassName: NAME-%[1]s}}"
	)
	meeting := "{requests: [zone, nic], matchAttribute: dra.net/numaNode}, {requests: [zone, gpu], matchAttribute: resource.kubernetes.io/numaNode}"
	three := "requests: [" + fmt.Sprintf(of, "gpu") + ", " + fmt.Sprintf(of, "nic") + ", " + fmt.Sprintf(asks, "zone", "cpu: 1") + "]"
	return map[string]advised{
		"amounts-of-two-devices": {
			devices: map[string]string{"zone": "{name: l3-0, " + zone + ", capacity: {cpu: {value: '4', " + amount + "}}}, " +
				"{name: numa-0, " + zone + ", capacity: {memory: {value: 8Gi, " + amount + "}}}"},
			claim:    "requests: [" + fmt.Sprintf(asks, "zone", "cpu: 4, memory: 1Gi") + "]",
			sentence: "no device has both cpu and memory: l3-0 has cpu, numa-0 has memory",
			hint:     "write 2 requests, {name: zone-cpu, ",
			better: "requests: [" + fmt.Sprintf(asks, "zone-cpu", "cpu: 4") + ", " + fmt.Sprintf(asks, "zone-memory", "memory: 1Gi") +
				"], constraints: [{requests: [zone-cpu, zone-memory], matchAttribute: resource.kubernetes.io/numaNode}]",
		},
		"no-attribute-in-common": {
			devices: map[string]string{
				"zone": "{name: numa-0, " + zone + ", capacity: {cpu: {value: '4', " + amount + "}}}",
				"nic":  "{name: eth0, attributes: {dra.net/numaNode: {int: 0}}}, {name: eth1, attributes: {dra.net/numaNode: {int: 0}}}",
				"gpu":  "{name: gpu0, attributes: {resource.kubernetes.io/numaNode: {int: 0}}}, {name: gpu1, attributes: {resource.kubernetes.io/numaNode: {int: 0}}}",
			},
			claim:    three + ", constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]",
			sentence: "has the attribute resource.kubernetes.io/numaNode, which a constraint matches",
			hint:     "write 2 constraints, " + strings.Replace(meeting, "}, {", "} and {", 1),
			better:   three + ", constraints: [" + meeting + "]",
		},
		"a-condition-of-the-class": {
			devices:  map[string]string{"zone": "{name: numa-0, " + zone + ", capacity: {cpu: {value: '4', " + amount + "}}}"},
			claim:    "requests: [{name: zone, exactly: {deviceClassName: NAME-large, capacity: {requests: {cpu: 1}}}}]",
			class:    `device.driver == "NAME.zone" && device.capacity["NAME.zone"].cpu.isGreaterThan(quantity("8"))`,
			sentence: `device.capacity["NAME.zone"].cpu.isGreaterThan(quantity("8")) is not met: numa-0 has NAME.zone/cpu 4`,
		},
		"a-class-that-excludes-the-driver": {
			devices:  map[string]string{"zone": "{name: numa-0, " + zone + ", capacity: {cpu: {value: '4', " + amount + "}}}"},
			claim:    "requests: [{name: zone, exactly: {deviceClassName: NAME-large}}]",
			class:    `!(device.driver == "NAME.zone") && device.driver.startsWith("NAME.")`,
			sentence: "of class NAME-large",
		},
	}
}

// manifest is the YAML of a case: classes, slices of its node, and pods with the two claims.
func (a advised) manifest(name string) string {
	const class = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: NAME-%s}, spec: {selectors: [{cel: {expression: '%s'}}]}}\n---\n"
	var text strings.Builder
	for _, driver := range sortedNames(a.devices) {
		fmt.Fprintf(&text, class, driver, `device.driver == "NAME.`+driver+`"`)
		fmt.Fprintf(&text, "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: NAME-%[1]s}, spec: {driver: NAME.%[1]s, nodeName: NAME-a, "+
			"pool: {name: NAME-a, generation: 1, resourceSliceCount: 1}, devices: [%[2]s]}}\n---\n", driver, a.devices[driver])
	}
	if a.class != "" {
		fmt.Fprintf(&text, class, "large", a.class)
	}
	for pod, claim := range map[string]string{"blocked": a.claim, "better": a.better} {
		if claim == "" {
			continue
		}
		fmt.Fprintf(&text, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: NAME-%[1]s}, spec: {devices: {%[2]s}}}\n---\n"+
			"{apiVersion: v1, kind: Pod, metadata: {name: NAME-%[1]s}, spec: {nodeSelector: {kubernetes.io/hostname: NAME-a}, tolerations: [{operator: Exists}], "+
			"resourceClaims: [{name: devices, resourceClaimName: NAME-%[1]s}], containers: [{name: main, image: none, resources: {claims: [{name: devices}]}}]}}\n---\n", pod, claim)
	}
	return strings.ReplaceAll(text.String(), "NAME", name)
}

// TestSchedulerDoesWhatExplainSays: the scheduler allocates no claim that explain calls
// blocked, and allocates the claim that explain advises.
func TestSchedulerDoesWhatExplainSays(t *testing.T) {
	api := connect(t, "APISERVER_KUBECONFIG")
	applier, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	waitForAccount(t, api)
	run := time.Now().Unix() % 100_000 // so that one cluster can have several runs
	rows := make(map[string]advised)
	var pods []string
	for what, row := range adviceRows() {
		name := fmt.Sprintf("%s-%d", what, run)
		rows[name] = row
		choice{nodes: []string{"{}"}}.createNodes(t, api, name)
		if err := applier.Apply(t.Context(), fstest.MapFS{name + ".yaml": {Data: []byte(row.manifest(name))}}, namespace); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, name+"-blocked")
		if row.better != "" {
			pods = append(pods, name+"-better")
		}
	}
	placed := waitForScheduler(t, api, pods)
	objects, err := live.Source{Client: api}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := simulate.New(objects, rulesOf(t, api, ""))
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range rows {
		blocked := placed[name+"-blocked"]
		if blocked.Spec.NodeName != "" {
			t.Errorf("%s: the scheduler places it on %s", blocked.Name, blocked.Spec.NodeName)
		}
		explanation, err := cluster.ExplainPod(t.Context(), objects.Pod(namespace, blocked.Name))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(explanation.Nodes, func(node simulate.NodeExplanation) bool { return node.Node == name+"-a" })
		own := explanation.Nodes[i]
		if want := strings.ReplaceAll(row.sentence, "NAME", name); !strings.Contains(own.Sentence, want) || !strings.Contains(own.Hint, row.hint) {
			t.Errorf("%s: explain says %q and hints at %q, want %q and %q", name, own.Sentence, own.Hint, want, row.hint)
		}
		if row.better == "" {
			continue
		}
		// The scheduler's first answer may be from before it knew the slices.
		better := placed[name+"-better"]
		for deadline := time.Now().Add(time.Minute); better.Spec.NodeName == "" && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if better, err = api.CoreV1().Pods(namespace).Get(t.Context(), better.Name, metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if better.Spec.NodeName != name+"-a" {
			t.Errorf("%s: %s", better.Name, message(better))
		}
	}
}
