package migration

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// What names the nodes of a pool of OpenShift.
const (
	poolLabel = "pools.operator.machineconfiguration.openshift.io/" // of a MachineConfigPool, before its name
	roleLabel = "node-role.kubernetes.io/"                          // of its nodes
)

// Annotations of a PerformanceProfile.
const (
	annotationGroup   = profileGroup + "/"
	withoutManagers   = annotationGroup + "dra-resource-management" // the operator sets no static managers
	snippetAnnotation = "kubeletconfig.experimental"                // JSON, below what the profile says
)

// poolKubelet reads the configuration that the kubelets of a pool have. The kubelets
// themselves know better: if they were read, only the fields are listed.
func (p *plan) poolKubelet(s *Source, fields map[string]any, selector map[string]string) error {
	if slices.ContainsFunc(p.sources, func(s Source) bool { return s.Kind == kubeletKind }) {
		return nil
	}
	if err := p.addKubelet(&Source{Kind: kubeletKind, Group: kubeletGroup, Node: s.Name, fields: fields}); err != nil {
		return err
	}
	k := &p.kubelets[len(p.kubelets)-1]
	if k.ofPool, k.selector = true, selector; selector == nil && !reflect.ValueOf(k.settings).IsZero() {
		p.add(s.String(), Line{
			Kind: s.Kind, Field: "spec.machineConfigPoolSelector", Value: "-", Outcome: ByHand,
			Says: "its pools say which nodes these are: write a profile of the NodeConfig with their nodeSelector and " + text(k.settings),
		})
	}
	return nil
}

// addKubeletConfig reads a part of a kubelet's configuration, which is for pools of nodes.
func (p *plan) addKubeletConfig(s *Source) error {
	if p.isMade(s) {
		return nil
	}
	var object struct {
		Spec struct {
			KubeletConfig             map[string]any       `json:"kubeletConfig"`
			MachineConfigPoolSelector metav1.LabelSelector `json:"machineConfigPoolSelector"`
		} `json:"spec"`
	}
	if err := s.decode(&object); err != nil {
		return err
	}
	p.list(&Source{Kind: kubeletKind, Group: kubeletGroup, Node: s.Name, fields: object.Spec.KubeletConfig})
	var selector map[string]string
	if pools := object.Spec.MachineConfigPoolSelector; len(pools.MatchLabels) == 1 && len(pools.MatchExpressions) == 0 {
		for label, value := range pools.MatchLabels {
			if pool, is := strings.CutPrefix(label, poolLabel); is && value == "" {
				selector = map[string]string{roleLabel + pool: ""}
			}
		}
	}
	return p.poolKubelet(s, object.Spec.KubeletConfig, selector)
}

// isMade reports whether an operator made a KubeletConfig of a PerformanceProfile that is read.
func (p *plan) isMade(s *Source) bool {
	return s.Kind == poolKind && slices.ContainsFunc(p.sources, func(o Source) bool { return o.Kind == profileKind && s.Owner == o.Kind+" "+o.Name })
}

// profile is a PerformanceProfile, as far as it decides what kubelets have.
type profile struct {
	Metadata struct{ Annotations map[string]string }
	Spec     struct {
		CPU           struct{ Reserved, OVSDPDK, Shared string }
		NUMA          struct{ TopologyPolicy string }
		WorkloadHints struct{ MixedCPUs bool }
		NodeSelector  map[string]string
	}
}

func (p *plan) addProfile(s *Source) error {
	var object profile
	if err := s.decode(&object); err != nil {
		return err
	}
	snippet := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(object.Metadata.Annotations)) {
		value := object.Metadata.Annotations[name]
		line := Line{Kind: s.Kind, Field: "metadata.annotations." + name, Value: short(value), Outcome: Stays, Says: forOperator}
		switch {
		case name == snippetAnnotation:
			if err := yaml.Unmarshal([]byte(value), &snippet); err != nil {
				return fmt.Errorf("%s %s: %s: %s", s.Kind, s, name, message.OneLine(err.Error()))
			}
			p.list(&Source{Kind: kubeletKind, Group: kubeletGroup, Node: s.Name, fields: snippet, variant: kubeletKind})
			continue
		case name == withoutManagers:
			line.Says = "the operator gives the kubelets of the pool no static managers and no reservedSystemCPUs, if it is true"
		case !strings.HasPrefix(name, annotationGroup):
			continue
		}
		p.add(s.String(), line)
	}
	reserved, err := object.reserved()
	if err != nil {
		return fmt.Errorf("%s %s: spec.cpu: %w", s.Kind, s, err)
	}
	fields := maps.Clone(snippet)
	if fields == nil { // the annotation is null
		fields = map[string]any{}
	}
	fields["reservedSystemCPUs"] = reserved.String()
	if without, err := strconv.ParseBool(object.Metadata.Annotations[withoutManagers]); err == nil && without {
		for _, name := range []string{"cpuManagerPolicy", "cpuManagerPolicyOptions", "memoryManagerPolicy", "topologyManagerPolicy"} {
			delete(fields, name)
		}
		if policy := object.Spec.NUMA.TopologyPolicy; policy != "" { // for pods that rely on it
			scope, _ := snippet["topologyManagerScope"].(string)
			p.policies, p.scopes = append(p.policies, policy), append(p.scopes, cmp.Or(scope, translate.ScopeContainer))
		}
	} else {
		object.addManagers(fields)
	}
	return p.poolKubelet(s, fields, object.Spec.NodeSelector)
}

// reserved returns the CPUs that no container has for itself.
func (object *profile) reserved() (reserved cpuset.Set, err error) {
	lists := []string{object.Spec.CPU.Reserved, object.Spec.CPU.OVSDPDK}
	if object.Spec.WorkloadHints.MixedCPUs {
		lists = append(lists, object.Spec.CPU.Shared)
	}
	for _, list := range lists {
		cpus, err := cpuset.Parse(list)
		if err != nil {
			return cpuset.Set{}, err
		}
		reserved = reserved.Union(cpus)
	}
	return reserved, nil
}

// addManagers adds what the Node Tuning Operator gives kubelets by the policy of a profile.
func (object *profile) addManagers(fields map[string]any) {
	policy := object.Spec.NUMA.TopologyPolicy
	if policy == "" {
		policy = translate.PolicyBestEffort
	}
	fields["cpuManagerPolicy"], fields["topologyManagerPolicy"] = "static", policy
	if policy != translate.PolicyRestricted && policy != translate.PolicySingleNUMANode {
		return
	}
	fields["memoryManagerPolicy"] = "Static"
	if fields["reservedMemory"] == nil {
		if sum, known := profileMemory(fields); known {
			fields["reservedMemory"] = []any{map[string]any{"numaNode": 0, "limits": map[string]any{"memory": sum}}}
		}
	}
	if policy == translate.PolicySingleNUMANode {
		options, _ := fields["cpuManagerPolicyOptions"].(map[string]any)
		if options = maps.Clone(options); options == nil {
			options = map[string]any{}
		}
		if _, has := options["full-pcpus-only"]; !has {
			options["full-pcpus-only"] = "true"
		}
		fields["cpuManagerPolicyOptions"] = options
	}
}

// profileMemory returns what the operator reserves on NUMA node 0: the memory that the kubelet
// keeps, by default 1100Mi. A share of the node, such as 5%, has no amount here.
func profileMemory(fields map[string]any) (amount string, known bool) {
	sum, err := quantity("0")
	for _, part := range [][3]string{{"kubeReserved", "memory", "500Mi"}, {"systemReserved", "memory", "500Mi"}, {"evictionHard", "memory.available", "100Mi"}} {
		amounts, _ := fields[part[0]].(map[string]any)
		value, has := amounts[part[1]]
		if !has {
			value = part[2]
		}
		more, wrong := quantity(value)
		if wrong != nil {
			err = wrong
		}
		sum.Add(more)
	}
	return sum.String(), err == nil
}
