// Package scenario makes up small clusters and pods that want devices of them: zones and
// whole devices, pools of caches, memory without CPUs, groups, rounding, constraints,
// alternatives, taints, shared claims, counters, versions, preferences for nodes. The same seed makes the same one. It is for tests that compare
// two answers to the question where the pods go.
package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Label is on every node, with the scenario's name: its pods select it.
const Label = "scenario.test/name"

// Scenario is a cluster of its own within a larger one: everything carries its
// name, and its pods see none of the others' devices, but those for all nodes
// that their drivers' names keep apart.
type Scenario struct {
	Name       string
	Namespace  string
	Nodes      []*corev1.Node
	Classes    []*resourceapi.DeviceClass
	Slices     []*resourceapi.ResourceSlice
	Templates  []*resourceapi.ResourceClaimTemplate
	Claims     []*resourceapi.ResourceClaim
	TaintRules []*resourceapi.DeviceTaintRule
	Others     []*corev1.Pod // have a node
	Pods       []*corev1.Pod // to be placed in this order
}

// maker is a scenario that is being made up.
type maker struct {
	*rand.Rand
	*Scenario
}

// New makes up a scenario. Its name is part of its objects' names.
func New(name string, seed uint64) Scenario {
	m := maker{rand.New(rand.NewPCG(seed, 0)), &Scenario{Name: name, Namespace: "default"}}
	alike := m.chance(3)
	for i := range 1 + m.IntN(3) {
		node := fmt.Sprintf("%s-n%d", name, i)
		m.addNode(node)
		if alike && i > 0 {
			m.copySlices(m.Nodes[0].Name, node)
		} else {
			m.addSlices(node)
		}
	}
	if m.chance(2) {
		m.addNetworkDevices()
	}
	m.addClasses()
	if m.chance(6) {
		m.addTaintRule()
	}
	for i := range 2 + m.IntN(4) {
		m.addPod(fmt.Sprintf("%s-p%d", name, i))
	}
	m.addPreferences(seed)
	m.addMore(seed)
	return *m.Scenario
}

// chance is true once in n.
func (m maker) chance(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m maker, list ...T) T { return list[m.IntN(len(list))] }

// driver is that of zones and the devices near them.
func (s Scenario) driver() string { return s.Name + ".zones.test" }

func (s Scenario) networkDriver() string { return s.Name + ".net.test" }

// Snapshot is the scenario as files have it, without what its pods get.
func (s Scenario) Snapshot() (*snapshot.Snapshot, error) {
	var text bytes.Buffer
	for _, object := range s.objects() {
		document, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s\n---\n", document)
	}
	result := &snapshot.Snapshot{}
	return result, result.Read("scenario "+s.Name, &text)
}

func (s Scenario) objects() []any {
	return slices.Concat(anys(s.Nodes), anys(s.Classes), anys(s.Slices), anys(s.Templates), anys(s.Claims), anys(s.TaintRules), anys(s.Others), anys(s.Pods))
}

func anys[T any](objects []T) (list []any) {
	for _, object := range objects {
		list = append(list, object)
	}
	return list
}

// typeMeta is what a file says of an object.
func typeMeta(kind string) metav1.TypeMeta {
	if kind == "Node" || kind == "Pod" {
		return metav1.TypeMeta{APIVersion: "v1", Kind: kind}
	}
	return metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: kind}
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func count(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func intAttribute(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
}
