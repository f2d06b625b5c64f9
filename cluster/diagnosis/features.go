package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// State says whether a cluster has a feature.
type State string

// The states of a feature.
const (
	FeatureOn      State = "on"
	FeatureOff     State = "off"
	FeaturePartly  State = "partly"  // on some nodes
	FeatureUnknown State = "unknown" // something could not be read
)

// Feature is something of this driver that depends on versions and feature gates.
type Feature struct {
	Name  string   `json:"name"` // stable
	What  string   `json:"what"`
	Needs []string `json:"needs"` // feature gates and versions
	State State    `json:"state"`
	// Why says what was detected if the state is not FeatureOn, and on which nodes.
	Why string `json:"why"`
}

// gated is a feature that depends on a feature gate.
type gated struct {
	name, what, gate string

	oldest    string // version of Kubernetes whose form of the gate the driver supports; "" means 1.36
	scheduler bool   // the scheduler needs the gate, too
	// controllers: so does the controller manager, which deletes pods of tainted devices.
	controllers bool
	// A gate that kubelets need, too, has a default there. It is off or on in kubelets
	// that do not set it.
	kubelets  bool
	defaultOn bool
}

// gatedFeatures returns the features that depend on a gate, in the order in which they
// are shown.
func gatedFeatures() []gated {
	return []gated{
		{name: "shared-zones", what: "claims share a zone, and each holds a part of its CPUs and memory", gate: "DRAConsumableCapacity", scheduler: true},
		{name: "claim-status", what: "the status of a claim says which CPUs it holds, and whether they are exclusive", gate: "DRAResourceClaimDeviceStatus"},
		{name: "alternatives", what: "a request names alternatives (firstAvailable)", gate: "DRAPrioritizedList", scheduler: true},
		{name: "device-taints", what: "the driver keeps new claims off a zone or device with a fault", gate: "DRADeviceTaints", scheduler: true, controllers: true},
		{name: "taint-rules", what: "you drain a zone or device with a DeviceTaintRule", gate: rulesGate, scheduler: true, controllers: true},
		{name: "admin-access", what: "a claim sees devices that others hold (adminAccess)", gate: "DRAAdminAccess", scheduler: true},
		{name: "extended-resources", what: "a pod without a claim asks for devices by the extendedResourceName of a class", gate: "DRAExtendedResource", scheduler: true},
		{name: "counted-claims", what: "scheduler and kubelet count what claims hold", gate: countingGate, oldest: "1.37.0", kubelets: true, scheduler: true},
		{name: "numa-node-lists", what: "a zone of several NUMA nodes has the list of them, so that it is near the devices of each", gate: listsGate, scheduler: true},
		{name: "health", what: "the status of a pod has the health of its devices", gate: "ResourceHealthStatus", kubelets: true, defaultOn: true},
	}
}

// Features says which features the cluster has, one entry for each.
func Features(f *Facts) []Feature {
	var features []Feature
	for _, g := range gatedFeatures() {
		feature := Feature{Name: g.name, What: g.what, Needs: []string{g.gate}}
		if g.oldest != "" {
			feature.Needs = append(feature.Needs, "Kubernetes "+strings.TrimSuffix(g.oldest, ".0"))
		}
		feature.State, feature.Why = f.stateOf(g)
		features = append(features, feature)
	}
	return append(features, f.exclusiveCPUs())
}

func (f *Facts) stateOf(g gated) (State, string) {
	on, known := f.Gates[g.gate]
	switch {
	case g.oldest != "" && older(f.Version, g.oldest):
		return FeatureOff, fmt.Sprintf("kube-apiserver %s is older than %s", f.Version, strings.TrimSuffix(g.oldest, ".0"))
	case f.Gates == nil:
		return FeatureUnknown, "the feature gates of the API server cannot be read"
	case !known && newer(f.Version, newestKubernetes):
		return FeatureUnknown, fmt.Sprintf("kube-apiserver %s does not report %s: newer versions have gates that are always on no more", f.Version, g.gate)
	case !known:
		return FeatureOff, fmt.Sprintf("kube-apiserver %s does not have %s", f.Version, g.gate)
	case !on:
		return FeatureOff, fmt.Sprintf("%s is off in kube-apiserver", g.gate)
	case g.gate == rulesGate && f.Objects.RuleVersion == snapshot.NotServed:
		return FeatureOff, "kube-apiserver serves no version of DeviceTaintRules"
	case g.scheduler && slices.ContainsFunc(f.programs(schedulerName), func(p program) bool { return !p.gate(g.gate, f.Version) }):
		return FeatureOff, fmt.Sprintf("%s is off in %s", g.gate, schedulerName)
	case !g.kubelets:
		return FeatureOn, ""
	}
	var off, unread []string
	nodes := f.Nodes()
	for _, node := range nodes {
		kubelet, read := f.Kubelets[node]
		if !read {
			unread = append(unread, node)
		} else if !kubelet.gate(g) {
			off = append(off, node)
		}
	}
	switch {
	case len(off) > 0 && len(off) == len(nodes):
		return FeatureOff, fmt.Sprintf("%s is off in the kubelets", g.gate)
	case len(off) > 0:
		return FeaturePartly, fmt.Sprintf("%s is off in the kubelets of %s", g.gate, firstOf(off))
	case len(unread) > 0:
		return FeatureUnknown, "the settings of the kubelets cannot be read: " + firstOf(unread)
	}
	return FeatureOn, ""
}

// gate reports whether the kubelet has the gate on. The gates with a default of false are
// alpha, the others are beta.
func (k Kubelet) gate(g gated) bool {
	group := "AllAlpha"
	if g.defaultOn {
		group = "AllBeta"
	}
	for _, name := range []string{g.gate, group} {
		if on, set := k.FeatureGates[name]; set {
			return on
		}
	}
	return g.defaultOn
}

// exclusiveCPUs says how the nodes keep other tasks off the CPUs of claims.
func (f *Facts) exclusiveCPUs() Feature {
	feature := Feature{
		Name: "exclusive-cpus", What: "only the tasks of a claim run on its CPUs",
		Needs: []string{"Linux 6.11, or NRI for the mode cooperative"}, State: FeatureOn,
	}
	nodes := make(map[string][]string)
	for _, slice := range f.zones() {
		node := *slice.Spec.NodeName
		for _, device := range slice.Spec.Devices {
			mode := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeExclusivity).StringValue
			if mode != nil && !slices.Contains(nodes[*mode], node) {
				nodes[*mode] = append(nodes[*mode], node)
			}
		}
	}
	without := nodes[string(driver.ExclusivityNone)]
	switch {
	case len(nodes) == 0:
		feature.State, feature.Why = FeatureUnknown, "no zones are published"
	case len(nodes) == 1 && len(without) > 0:
		feature.State = FeatureOff
	case len(without) > 0:
		feature.State = FeaturePartly
	}
	var parts []string
	for _, mode := range []driver.Exclusivity{driver.ExclusivityKernel, driver.ExclusivityCooperative, driver.ExclusivityNone} {
		if list := nodes[string(mode)]; len(list) > 0 {
			slices.Sort(list)
			parts = append(parts, fmt.Sprintf("%s on %s", mode, firstOf(list)))
		}
	}
	if len(parts) > 0 {
		feature.Why = strings.Join(parts, "; ")
	}
	return feature
}
