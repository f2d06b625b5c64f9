package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// kubelet is the configuration of one, as far as it becomes settings.
type kubelet struct {
	node     string
	settings deviceclasses.NodeSettings
	// ofPool is the configuration of a pool of nodes. selector is the label of its nodes; nil
	// if nothing says it.
	ofPool   bool
	selector map[string]string

	hasPolicy               bool // there is a cpuManagerPolicy
	cpuStatic, memoryStatic bool
	options                 bool   // cpuManagerPolicyOptions are set
	topologyPolicy          string // "" if it is none
	wholeCores              bool   // full-pcpus-only
}

// addKubelet reads what reserves CPUs and memory, and which managers there are.
func (p *plan) addKubelet(s *Source) error {
	var config struct {
		CPUManagerPolicy        string            `json:"cpuManagerPolicy"`
		CPUManagerPolicyOptions map[string]string `json:"cpuManagerPolicyOptions"`
		MemoryManagerPolicy     string            `json:"memoryManagerPolicy"`
		TopologyManagerPolicy   string            `json:"topologyManagerPolicy"`
		TopologyManagerScope    string            `json:"topologyManagerScope"`
		ReservedSystemCPUs      string            `json:"reservedSystemCPUs"`
		KubeReserved            map[string]string `json:"kubeReserved"`
		SystemReserved          map[string]string `json:"systemReserved"`
		ReservedMemory          []struct {
			NUMANode int            `json:"numaNode"`
			Limits   map[string]any `json:"limits"`
		} `json:"reservedMemory"`
	}
	if err := s.decode(&config); err != nil {
		return err
	}
	k := kubelet{
		node:      s.Node,
		hasPolicy: config.CPUManagerPolicy != "",
		cpuStatic: config.CPUManagerPolicy == "static", memoryStatic: config.MemoryManagerPolicy == "Static",
		options:    len(config.CPUManagerPolicyOptions) > 0,
		wholeCores: config.CPUManagerPolicyOptions["full-pcpus-only"] == "true",
	}
	if cpus, err := cpuset.Parse(config.ReservedSystemCPUs); err != nil {
		return fmt.Errorf("%s %s: reservedSystemCPUs: %w", s.Kind, s, err)
	} else if !cpus.IsEmpty() {
		k.settings.ReservedCPUs = cpus.String()
	}
	k.countReserved(p, s, config.KubeReserved, config.SystemReserved)
	memory, pages := map[string][]int{}, map[string][]int{} // NUMA nodes by amount, and by size and amount
	for _, entry := range config.ReservedMemory {
		if entry.NUMANode < 0 || entry.NUMANode >= cpuset.MaxCPUs {
			return fmt.Errorf("%s %s: reservedMemory: numaNode %d, want 0 to %d", s.Kind, s, entry.NUMANode, cpuset.MaxCPUs-1)
		}
		for name, value := range entry.Limits {
			amount, err := quantity(value)
			if err != nil {
				return fmt.Errorf("%s %s: reservedMemory: %s: %w", s.Kind, s, name, err)
			}
			if size, huge := strings.CutPrefix(name, corev1.ResourceHugePagesPrefix); huge {
				pages[size+" "+amount.String()] = append(pages[size+" "+amount.String()], entry.NUMANode)
			} else if name == string(corev1.ResourceMemory) {
				memory[amount.String()] = append(memory[amount.String()], entry.NUMANode)
			}
		}
	}
	for _, amount := range slices.Sorted(maps.Keys(memory)) {
		k.settings.ReservedNodeMemory = append(k.settings.ReservedNodeMemory, deviceclasses.MemoryReservation{NUMANodes: listOf(memory[amount]), Amount: amount})
	}
	for _, key := range slices.Sorted(maps.Keys(pages)) {
		size, amount, _ := strings.Cut(key, " ")
		k.settings.ReservedHugepages = append(k.settings.ReservedHugepages, deviceclasses.HugepageReservation{NUMANodes: listOf(pages[key]), Size: size, Amount: amount})
	}
	if k.settings.ReservedNodeMemory != nil {
		// Without it, a daemon that reads the kubelet's file reserves the same memory twice.
		k.settings.ReservedMemory = new(resource.Quantity)
	}
	if policy := config.TopologyManagerPolicy; policy != translate.PolicyNone {
		k.topologyPolicy = policy
	}
	if k.cpuStatic {
		p.policies = append(p.policies, cmp.Or(config.TopologyManagerPolicy, translate.PolicyNone))
		p.scopes = append(p.scopes, cmp.Or(config.TopologyManagerScope, translate.ScopeContainer))
	}
	p.kubelets = append(p.kubelets, k)
	return nil
}

// refuses reports whether the topology manager refuses pods.
func (k *kubelet) refuses() bool {
	return k.topologyPolicy == translate.PolicyRestricted || k.topologyPolicy == translate.PolicySingleNUMANode
}

// addParts says which files may be parts of a kubelet's configuration: they lack what another
// one has. configz has every field.
func (p *plan) addParts() {
	for _, k := range p.kubelets {
		if !k.ofPool && !k.hasPolicy && slices.ContainsFunc(p.kubelets, func(k kubelet) bool { return k.hasPolicy && !k.ofPool }) {
			p.add(k.node, Line{
				Kind: kubeletKind, Field: "cpuManagerPolicy", Value: "-", Outcome: ByHand,
				Says: "another file has it: if this one is for the same kubelet (--config-dir), give migrate configz of the node instead, because it merges no files, and takes each for a node with defaults for what it lacks",
			})
		}
	}
}

// countReserved says how many CPUs a static manager keeps that has only an amount. The
// kubelet chooses which.
func (k *kubelet) countReserved(p *plan, s *Source, reserved ...map[string]string) {
	var sum resource.Quantity
	for _, amounts := range reserved {
		if amount, err := quantity(amounts[string(corev1.ResourceCPU)]); err == nil {
			sum.Add(amount)
		}
	}
	if k.settings.ReservedCPUs != "" || !k.cpuStatic || sum.IsZero() {
		return
	}
	p.add(s.String(), Line{
		Kind: s.Kind, Field: "reservedSystemCPUs", Value: "-", Outcome: ByHand,
		Says: fmt.Sprintf("the static manager keeps %d CPUs of its own choice for kubeReserved and systemReserved: set reservedCPUs to those that are to stay free of claims, else it is the first core", sum.Value()),
	})
}

// quantity reads an amount. One with a large exponent would be computed for hours.
func quantity(value any) (resource.Quantity, error) {
	amount := text(value)
	if i := strings.IndexAny(amount, "eE"); i < 0 || len(amount)-i <= len("e18") {
		if parsed, err := resource.ParseQuantity(amount); err == nil {
			return parsed, nil
		}
	}
	return resource.Quantity{}, fmt.Errorf("%q, want an amount such as 1Gi", message.Short(amount, mostValue))
}

// listOf returns numbers as a list such as 0-1.
func listOf(numbers []int) string { return cpuset.New(numbers...).String() }

// addTopology reads policy and scope of the kubelet as an exporter saw them.
func (p *plan) addTopology(s *Source) error {
	var object struct {
		TopologyPolicies []string
		Attributes       []struct{ Name, Value string }
	}
	if err := s.decode(&object); err != nil {
		return err
	}
	if slices.ContainsFunc(p.sources, func(s Source) bool { return s.Kind == kubeletKind }) {
		return nil
	}
	for _, attribute := range object.Attributes {
		switch attribute.Name {
		case "topologyManagerPolicy":
			p.policies = append(p.policies, attribute.Value)
		case "topologyManagerScope":
			p.scopes = append(p.scopes, attribute.Value)
		}
	}
	for _, name := range object.TopologyPolicies {
		for prefix, policy := range map[string]string{
			"SingleNUMANode": translate.PolicySingleNUMANode, "Restricted": translate.PolicyRestricted,
			"BestEffort": translate.PolicyBestEffort, "None": translate.PolicyNone,
		} {
			if rest, is := strings.CutPrefix(name, prefix); is {
				p.policies = append(p.policies, policy)
				p.scopes = append(p.scopes, map[string]string{"PodLevel": translate.ScopePod}[rest])
			}
		}
	}
	return nil
}

// strictest are policies, from the one that refuses most.
var strictest = []string{translate.PolicySingleNUMANode, translate.PolicyRestricted, translate.PolicyBestEffort, translate.PolicyNone}

// translation returns the values webhook.translate, or nil if no pods are known to rely on a
// static manager. The chart has defaults for what is not known.
func (p *plan) translation() map[string]any {
	policies := slices.Compact(slices.Sorted(slices.Values(p.policies)))
	scopes := slices.Compact(slices.Sorted(slices.Values(p.scopes)))
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return s == "" })
	values := map[string]any{"enabled": true}
	if len(policies) == 0 && !slices.ContainsFunc(p.sources, func(s Source) bool { return s.Kind == rmdWorkloadKind && s.ofPod() }) {
		return nil
	}
	if len(policies) == 0 {
		return values
	}
	for _, policy := range slices.Backward(strictest) {
		if slices.Contains(policies, policy) {
			values["policy"] = policy
		}
	}
	if slices.Contains(scopes, translate.ScopePod) { // it aligns more
		values["scope"] = translate.ScopePod
	} else {
		values["scope"] = translate.ScopeContainer
	}
	if slices.ContainsFunc(p.kubelets, func(k kubelet) bool { return k.wholeCores }) {
		values["partOfCore"] = translate.PartOfCoreRound
	}
	for _, differs := range []struct {
		field string
		found []string
	}{{"topologyManagerPolicy", policies}, {"topologyManagerScope", scopes}} {
		if len(differs.found) > 1 {
			p.add("all", Line{
				Kind: kubeletKind, Field: differs.field, Value: strings.Join(differs.found, ", "), Outcome: ByHand,
				Says: "nodes differ, and the webhook has one value for all pods, because it does not know their nodes: values.yaml has the strictest",
			})
		}
	}
	return values
}
