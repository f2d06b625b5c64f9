package migration

import (
	"cmp"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// rdtLabel is the label of the nodes on which the RDT operator runs its daemon by default.
const rdtLabel = "feature.node.kubernetes.io/cpu-rdt.RDTL3CA"

// What rmd.toml of the daemon has by default. No object of the cluster has that file.
const (
	osWays        = 1  // [OSGroup] cacheways
	sharedWays    = 2  // [CachePool] shared
	sharedMembers = 10 // [CachePool] max_allowed_shared
)

// Classes of the pools of caches.
const (
	zoneClass  = "zone.dra.numa"
	guaranteed = "gold.dra.numa"
	bestEffort = "silver.dra.numa"
	shared     = "bronze.dra.numa"
)

// workload is an RmdWorkload of no pod.
type workload struct {
	namespace, name string
	cpus            cpuset.Set
	nodes           []string // "" of all
	class           string   // of its cache
	least, most     int      // ways
	percent, mbps   int
}

// ofPod reports whether the RDT operator made the object of a pod.
func (s *Source) ofPod() bool { return strings.HasPrefix(s.Owner, "Pod ") }

func (p *plan) addRMDConfig(s *Source) error {
	var object struct {
		Spec struct{ RMDNodeSelector map[string]string }
	}
	if err := s.decode(&object); err != nil {
		return err
	}
	if p.selector = object.Spec.RMDNodeSelector; len(p.selector) == 0 {
		p.selector = map[string]string{rdtLabel: "true"}
	}
	return nil
}

func (p *plan) addWorkload(s *Source) error {
	if s.ofPod() {
		return nil
	}
	var object struct {
		Spec struct {
			AllCores bool     `json:"allCores"`
			CoreIDs  []string `json:"coreIds"`
			Policy   string   `json:"policy"`
			Nodes    []string `json:"nodes"`
			RDT      struct {
				Cache struct{ Max, Min int }
				MBA   struct{ Percentage, Mbps int }
			} `json:"rdt"`
			NodeSelector map[string]string `json:"nodeSelector"`
		} `json:"spec"`
	}
	if err := s.decode(&object); err != nil {
		return err
	}
	spec := object.Spec
	w := workload{
		namespace: s.Namespace, name: s.Name, nodes: spec.Nodes,
		least: spec.RDT.Cache.Min, most: spec.RDT.Cache.Max, percent: spec.RDT.MBA.Percentage, mbps: spec.RDT.MBA.Mbps,
	}
	if len(spec.NodeSelector) > 0 {
		w.nodes = nil // it counts before the list
	}
	for _, list := range spec.CoreIDs {
		cpus, err := cpuset.Parse(list)
		if err != nil {
			return fmt.Errorf("%s %s: coreIds: %w", s.Kind, s, err)
		}
		w.cpus = w.cpus.Union(cpus)
	}
	if w.least < 0 || w.least > w.most || w.most > deviceclasses.MaxWays {
		return fmt.Errorf("%s %s: rdt.cache: min %d, max %d: want 0 <= min <= max <= %d", s.Kind, s, w.least, w.most, deviceclasses.MaxWays)
	}
	switch {
	case spec.Policy != "":
		s.variant = policyKind
		w.class = map[string]string{"gold": guaranteed, "silver": bestEffort, "bronze": shared}[spec.Policy]
		w.least, w.most, w.percent, w.mbps = 0, 0, 0, 0 // a policy decides all numbers
	case w.most == 0:
		if w.class = shared; w.percent+w.mbps > 0 {
			s.variant = bandwidthKind
		}
	case w.least == w.most:
		w.class = guaranteed
	default:
		w.class = bestEffort
	}
	if spec.AllCores {
		s.variant = allCoresKind
		p.addGroup(s, w, "this is cache.os: {")
	}
	p.list(s)
	if spec.AllCores || w.class == "" || w.cpus.IsEmpty() {
		return nil
	}
	p.workloads = append(p.workloads, w)
	p.addGroup(s, w, fmt.Sprintf("if tasks without a pod run on these CPUs: cache.groups: [{name: %s, cpus: %q, ", w.name, w.cpus))
	return nil
}

// addGroup lists what a workload of tasks without a pod becomes.
func (p *plan) addGroup(s *Source, w workload, begin string) {
	var fields []string
	for _, amount := range []struct {
		name  string
		value int
	}{{"ways", w.most}, {string(deviceclasses.CapacityBandwidthPercent), w.percent}, {string(deviceclasses.CapacityBandwidthMBps), w.mbps}} {
		if amount.value > 0 {
			fields = append(fields, fmt.Sprintf("%s: %d", amount.name, amount.value))
		}
	}
	if len(fields) == 0 {
		fields = []string{"ways: <those of the policy>"}
	}
	says := begin + strings.Join(fields, ", ") + "}"
	if strings.Contains(begin, "[") {
		says += "]"
	}
	p.add(s.String(), Line{Kind: s.Kind, Field: "spec", Value: "-", Outcome: ByHand, Says: says})
}

// cacheSettings returns the pools of the daemon's file. Without it, they have room for what the
// workloads have, and each node gets pools for the node with the most. nil if there are none.
func (p *plan) cacheSettings() *deviceclasses.NodeSettings {
	if len(p.workloads) == 0 && p.daemon == nil {
		return nil
	}
	if p.daemon != nil {
		return &deviceclasses.NodeSettings{Cache: &p.daemon.pools}
	}
	return &deviceclasses.NodeSettings{Cache: p.poolsOfWorkloads()}
}

func (p *plan) poolsOfWorkloads() *deviceclasses.CachePools {
	pools := &deviceclasses.CachePools{OS: &deviceclasses.CacheWays{Ways: osWays}}
	if ways, has := p.waysOf(guaranteed); has {
		pools.Guaranteed = &deviceclasses.GuaranteedPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: max(ways, 1)}}
	}
	if ways, has := p.waysOf(bestEffort); has {
		pools.BestEffort = &deviceclasses.BestEffortPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: max(ways, 1)}}
	}
	if _, has := p.waysOf(shared); has {
		pools.Shared = &deviceclasses.SharedPool{Ways: sharedWays, Members: sharedMembers}
	}
	return pools
}

// waysOf returns how many ways the workloads of a class have on the node where they have the
// most.
func (p *plan) waysOf(class string) (most int, found bool) {
	everywhere, on := 0, map[string]int{}
	for _, w := range p.workloads {
		if w.class != class {
			continue
		}
		found = true
		if len(w.nodes) == 0 {
			everywhere += w.most
		}
		for _, node := range w.nodes {
			on[node] += w.most
		}
	}
	for _, ways := range on {
		most = max(most, ways)
	}
	return most + everywhere, found
}

// addTemplates writes a claim template for each workload with CPUs: a pod with such a claim
// has CPUs of its own, which the driver chooses, with the same ways.
func (p *plan) addTemplates() error {
	var texts []string
	for _, w := range p.workloads {
		object, err := manifest.Template(manifest.Metadata{Namespace: w.namespace, Name: w.name}, w.wish())
		if err != nil {
			return fmt.Errorf("%s %s: %w", rmdWorkloadKind, cmp.Or(w.namespace, "default")+"/"+w.name, err)
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		texts = append(texts, string(text))
	}
	if len(texts) > 0 {
		p.Files = append(p.Files, File{"templates.yaml", "templates of claims with the CPUs and ways of RmdWorkloads, for pods that name them: kubectl apply -f templates.yaml", strings.Join(texts, "---\n")})
	}
	return nil
}

func (w workload) wish() manifest.Wish {
	wish := manifest.Wish{Class: zoneClass, CPUs: int64(w.cpus.Size()), Shares: 1}
	wish.Cache = &manifest.Cache{Class: w.class, Ways: int64(w.least)}
	if w.class == guaranteed {
		wish.Cache.Ways = int64(w.most)
	}
	if w.class == bestEffort && w.most > 0 {
		wish.Config.Cache.MaxWays = w.most
	}
	if w.class != shared { // which has no bandwidth of its own
		wish.Cache.BandwidthPercent, wish.Cache.BandwidthMBps = int64(w.percent), int64(w.mbps)
	}
	return wish
}
