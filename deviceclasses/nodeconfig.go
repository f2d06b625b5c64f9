package deviceclasses

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// NodeConfigKind is the kind of a NodeConfig.
const NodeConfigKind = "NodeConfig"

// Values of NodeConfig.Exclusivity. The default is ExclusivityAuto.
const (
	ExclusivityAuto        = "auto"        // the first of the following that the node supports
	ExclusivityKernel      = "kernel"      // cpuset partitions
	ExclusivityCooperative = "cooperative" // the container runtime, through NRI
	ExclusivityNone        = "none"        // nothing
)

// Exclusivities returns what zones publish: the values without ExclusivityAuto.
func Exclusivities() []string {
	return []string{ExclusivityKernel, ExclusivityCooperative, ExclusivityNone}
}

// Values of NodeConfig.ZoneBy. The default is ZoneByNUMA.
const (
	ZoneByNUMA     = "numa"     // a NUMA node
	ZoneByL3       = "l3"       // the CPUs of a level-3 cache; memory stays in zones of NUMA nodes
	ZoneBySocket   = "socket"   // all NUMA nodes of a socket that have CPUs
	ZoneByCoreType = "coreType" // on hybrid processors, the CPUs of one type of cores of a NUMA node; memory stays in zones of NUMA nodes
	ZoneByMachine  = "machine"  // all NUMA nodes of the machine that have CPUs
)

// ZoneBys returns all values of NodeConfig.ZoneBy, the default first.
func ZoneBys() []string {
	return []string{ZoneByNUMA, ZoneByL3, ZoneBySocket, ZoneByCoreType, ZoneByMachine}
}

// Values of NodeConfig.ZoneOrder. The default is ZoneOrderStatic. Of zones that are equally good,
// those with the lowest id come first.
const (
	ZoneOrderStatic = "static" // by their ids
	ZoneOrderPack   = "pack"   // those with the fewest free CPUs first, so that other zones stay empty
	ZoneOrderSpread = "spread" // those with the most free CPUs first, so that all memory controllers have work
)

// ZoneOrders returns all values of NodeConfig.ZoneOrder, the default first.
func ZoneOrders() []string { return []string{ZoneOrderStatic, ZoneOrderPack, ZoneOrderSpread} }

// Values of NodeConfig.Accounting. The default is AccountingAuto.
const (
	AccountingAuto     = "auto"         // the scheduler, if its feature gate DRANodeAllocatableResources is on, else the requests of pods
	AccountingRequests = "pod-requests" // the requests of pods, so that pods can share claims
)

// Values of NodeConfig.NUMANodeLists. The default is NUMANodeListsAuto.
const (
	NUMANodeListsAuto  = "auto"  // if the feature gate DRAListTypeAttributes of the API server is on
	NUMANodeListsNever = "never" // no, for a scheduler whose gate is off
)

// Values of NodeConfig.CPUQuota. The default is CPUQuotaLift.
const (
	CPUQuotaLift = "lift" // it is lifted, and so is that of its pod, unless the pod has a limit of its own
	CPUQuotaKeep = "keep" // it stays
)

// Values of NodeConfig.Publishing. The default is PublishingRunning.
const (
	PublishingRunning = "running" // what has changed is published
	PublishingPaused  = "paused"  // the ResourceSlices that there are stay as they are
)

// NodeConfig is the operator's configuration of nodes. It is a file that the daemon
// reads when it starts.
type NodeConfig struct {
	metav1.TypeMeta `json:",inline"`
	NodeSettings    `json:",inline"`

	// Profiles override fields for the nodes that have certain labels. If several
	// profiles of a node set the same field, the last one wins. The daemon reads the
	// labels when it starts, and then in growing pauses of up to an hour. It starts again
	// if they choose other settings.
	//
	//	profiles: [{nodeSelector: {pool: batch}, reservedCPUs: 0-3}]
	Profiles []NodeProfile `json:"profiles,omitempty"`
}

// NodeSettings are the fields of a NodeConfig that a profile can also have.
type NodeSettings struct {
	// ReservedCPUs is the list of CPUs that no claim gets. The default is the kubelet's
	// reservedSystemCPUs, else the first core that is not in isolcpus=. A CPU of the list that
	// is offline stays reserved. The kubelet refuses a reservedSystemCPUs with such a CPU when
	// it restarts.
	//
	//	reservedCPUs: 0-1,8-9
	ReservedCPUs string `json:"reservedCPUs,omitempty"`
	// ReservedMemory is the memory of each NUMA node that no claim gets, 0 or more. The
	// default is what the kubelet's reservedMemory says of each NUMA node, else 0.
	//
	//	reservedMemory: 256Mi
	ReservedMemory *resource.Quantity `json:"reservedMemory,omitempty"`
	// ReservedHugepages are hugepages that no claim gets, by size and NUMA node. The
	// default is what the kubelet's reservedMemory says of hugepages, else none. An empty
	// list reserves none.
	//
	//	reservedHugepages: [{numaNodes: "0", size: 1Gi, amount: 1Gi}]
	ReservedHugepages []HugepageReservation `json:"reservedHugepages,omitempty"`
	// ReservedNodeMemory is memory of certain NUMA nodes that no claim gets, besides
	// reservedMemory.
	//
	//	reservedNodeMemory: [{numaNodes: "0", amount: 4Gi}]
	ReservedNodeMemory []MemoryReservation `json:"reservedNodeMemory,omitempty"`
	// Exclude names zones, memory and hugepages of which no claim gets anything.
	//
	//	exclude: {zones: [numa-3], memoryOf: "1", hugepages: [2Mi]}
	Exclude *Exclusion `json:"exclude,omitempty"`
	// Exclusivity says what keeps other tasks off the CPUs of claims. With kernel, the
	// daemon does not start on a node that does not support it.
	//
	//	exclusivity: kernel
	Exclusivity string `json:"exclusivity,omitempty"`
	// CPUQuota says what happens to the quota that the kubelet makes of a container's CPU limit,
	// if the limit is no less than the number of CPUs that claims give the container.
	//
	//	cpuQuota: keep
	CPUQuota string `json:"cpuQuota,omitempty"`
	// ZoneBy says what one zone is. A zone is a device that claims share.
	//
	//	zoneBy: socket
	ZoneBy string `json:"zoneBy,omitempty"`
	// ZoneOrder says in which order the scheduler tries the zones of the node, of those with
	// free CPUs and without a published PCI function.
	//
	//	zoneOrder: spread
	ZoneOrder string `json:"zoneOrder,omitempty"`
	// Groups are names, at most 4, of which each zone takes one claim: with groups: [kafka],
	// zones have the capacity groupKafka, and claims that ask for 1 of it are on different zones
	// of a node. A name has letters and digits, and begins with a small letter.
	//
	//	groups: [kafka, etcd]
	Groups []string `json:"groups,omitempty"`
	// Accounting says what counts the CPUs, memory and hugepages of claims in the node's
	// allocatable.
	//
	//	accounting: pod-requests
	Accounting string `json:"accounting,omitempty"`
	// OtherCPUDrivers are names of other DRA drivers that give out CPUs of nodes, besides
	// dra.cpu and drivers whose devices say so. A node with devices of such a driver
	// publishes nothing.
	//
	//	otherCPUDrivers: [cores.example.com]
	OtherCPUDrivers []string `json:"otherCPUDrivers,omitempty"`
	// OtherMemoryDrivers are names of other DRA drivers that give out memory of nodes,
	// besides dra.memory and drivers whose devices say so. On a node with devices of such
	// a driver, zones have no memory and no hugepages.
	//
	//	otherMemoryDrivers: [cxl.example.com]
	OtherMemoryDrivers []string `json:"otherMemoryDrivers,omitempty"`
	// NUMANodeKeys are the attributes, at most 4, under which devices have the id of their
	// NUMA node besides resource.kubernetes.io/numaNode, so that matchAttribute can put them
	// near devices of drivers that use other keys. The default is dra.net/numaNode and
	// gpu.amd.com/numaNode. With an empty list, devices have none.
	//
	//	numaNodeKeys: [fpga.example.com/numaNode]
	NUMANodeKeys []resourceapi.QualifiedName `json:"numaNodeKeys,omitempty"`
	// NUMANodeLists says whether a zone of several NUMA nodes, as zoneBy: socket or machine
	// makes it, has the list of their ids under the keys of the NUMA node. The daemon can ask
	// the API server for the gate, but not the scheduler.
	//
	//	numaNodeLists: never
	NUMANodeLists string `json:"numaNodeLists,omitempty"`
	// Publishing says whether the daemon writes ResourceSlices. A file on the node pauses it,
	// too. Claims are prepared and unprepared as before.
	//
	//	publishing: paused
	Publishing string `json:"publishing,omitempty"`
	// Devices selects the PCI functions that are published as devices. Without it, none
	// are published.
	//
	//	devices: {presets: [gpu], exclude: ["0000:3b:00.0"]}
	Devices *DeviceSelection `json:"devices,omitempty"`
	// Cache divides the level-3 caches of nodes whose kernel can do that into pools, from
	// which claims get ways, and measures what claims use of them. Without it, the driver
	// does neither.
	//
	//	cache: {os: {ways: 1}, guaranteed: {ways: 10, defaultWays: 4}}
	Cache *CachePools `json:"cache,omitempty"`
	// Performance lets claims make their CPUs fast and quiet, and gives the other CPUs a
	// default. Without it, nothing about frequencies, idle states and interrupts is changed.
	//
	//	performance: {allow: class}
	Performance *NodePerformance `json:"performance,omitempty"`
}

// NodeProfile is the settings of the nodes that have certain labels.
type NodeProfile struct {
	// NodeSelector is one or more labels. A node must have all of them.
	//
	//	nodeSelector: {pool: batch, size: large}
	NodeSelector map[string]string `json:"nodeSelector"`
	NodeSettings `json:",inline"`
}

// ReservedMemoryBytes returns ReservedMemory in bytes, or 0 if it is not set.
func (s NodeSettings) ReservedMemoryBytes() uint64 {
	if s.ReservedMemory == nil {
		return 0
	}
	return uint64(s.ReservedMemory.Value())
}

// DecodeNodeConfig reads a file that holds one NodeConfig, in YAML or JSON. Anything
// unknown is an error of one line, which names the field and what is allowed. It does
// not check whether the machine has the reserved CPUs.
func DecodeNodeConfig(text []byte) (NodeConfig, error) {
	document, err := onlyDocument(text)
	if err != nil {
		return NodeConfig{}, err
	}
	var config NodeConfig
	if err := decode(NodeConfigKind, document, &config, &config.TypeMeta); err != nil {
		return NodeConfig{}, explainQuantity(err, document)
	}
	if err := config.validate(); err != nil {
		return NodeConfig{}, err
	}
	return config, nil
}

func (c NodeConfig) validate() error {
	if err := c.NodeSettings.validate(); err != nil {
		return err
	}
	for i, profile := range c.Profiles {
		if err := cmp.Or(profile.validateSelector(), profile.NodeSettings.validate()); err != nil {
			return fmt.Errorf("profiles[%d].%w", i, err)
		}
	}
	return nil
}

func (s NodeSettings) validate() error {
	if _, err := cpuset.Parse(s.ReservedCPUs); err != nil {
		return fmt.Errorf("reservedCPUs: %w; want a list such as 0-1,8", err)
	}
	if s.ReservedMemory != nil && s.ReservedMemory.Sign() < 0 {
		return fmt.Errorf("reservedMemory: %s, %s", s.ReservedMemory, wantMemory)
	}
	if err := cmp.Or(validateHugepages(s.ReservedHugepages), validateMemory(s.ReservedNodeMemory), s.Exclude.validate()); err != nil {
		return err
	}
	if err := checkChoices(
		choice{"exclusivity", s.Exclusivity, append([]string{ExclusivityAuto}, Exclusivities()...)},
		choice{"cpuQuota", s.CPUQuota, []string{CPUQuotaLift, CPUQuotaKeep}},
		choice{"zoneBy", s.ZoneBy, ZoneBys()},
		choice{"zoneOrder", s.ZoneOrder, ZoneOrders()},
		choice{"accounting", s.Accounting, []string{AccountingAuto, AccountingRequests}},
		choice{"numaNodeLists", s.NUMANodeLists, []string{NUMANodeListsAuto, NUMANodeListsNever}},
		choice{"publishing", s.Publishing, []string{PublishingRunning, PublishingPaused}},
	); err != nil {
		return err
	}
	for field, names := range map[string][]string{"otherCPUDrivers": s.OtherCPUDrivers, "otherMemoryDrivers": s.OtherMemoryDrivers} {
		for i, name := range names {
			if problems := content.IsDNS1123Subdomain(name); len(problems) > 0 {
				return fmt.Errorf("%s[%d]: %q: %s", field, i, name, problems[0])
			}
			if name == DriverName {
				return fmt.Errorf("%s[%d]: %q is this driver, want the name of another one", field, i, name)
			}
		}
	}
	if err := cmp.Or(validateKeys(s.NUMANodeKeys), validateGroups(s.Groups)); err != nil {
		return err
	}
	if s.Devices != nil {
		if err := s.Devices.validate(); err != nil {
			return err
		}
	}
	if s.Performance != nil {
		if err := s.Performance.validate(); err != nil {
			return err
		}
	}
	if s.Cache != nil {
		return s.Cache.Validate()
	}
	return nil
}

// MaxNUMANodeKeys is how many keys NodeSettings.NUMANodeKeys may have, which leaves room for
// the other attributes of a device.
const MaxNUMANodeKeys = 4

// validateKeys refuses what is no attribute of another driver.
func validateKeys(keys []resourceapi.QualifiedName) error {
	if len(keys) > MaxNUMANodeKeys {
		return fmt.Errorf("numaNodeKeys: %d keys, at most %d are allowed", len(keys), MaxNUMANodeKeys)
	}
	for i, key := range keys {
		domain, name, has := strings.Cut(string(key), "/")
		problems := append(content.IsDNS1123Subdomain(domain), content.IsCIdentifier(name)...)
		switch {
		case !has:
			problems = []string{"want a domain and a name, such as dra.net/numaNode"}
		case len(domain) > resourceapi.DeviceMaxDomainLength || len(name) > resourceapi.DeviceMaxIDLength:
			problems = []string{fmt.Sprintf("at most %d bytes are allowed before the slash, and %d behind it", resourceapi.DeviceMaxDomainLength, resourceapi.DeviceMaxIDLength)}
		case domain == DriverName || strings.HasPrefix(string(key), deviceattribute.StandardDeviceAttributePrefix):
			problems = []string{"it is of this driver or of Kubernetes, want one of another driver"}
		case slices.Contains(keys[:i], key):
			problems = []string{"it is in the list twice"}
		}
		if len(problems) > 0 {
			return fmt.Errorf("numaNodeKeys[%d]: %q: %s", i, key, problems[0])
		}
	}
	return nil
}

const wantMemory = "want a quantity of 0 or more, such as 256Mi"

// onlyDocument returns the only document of the file, as JSON.
func onlyDocument(text []byte) (document []byte, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, oneLine(err)
		}
		next, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			return nil, oneLine(err)
		}
		if string(next) == "null" {
			continue // comments only
		}
		if document != nil {
			return nil, errors.New("the file has several documents, want one " + NodeConfigKind)
		}
		document = next
	}
	if document == nil {
		return nil, errors.New("the file is empty, want one " + NodeConfigKind)
	}
	return document, nil
}

// explainQuantity adds the field to the error of a malformed quantity. Only reservedMemory is
// a quantity, of the NodeConfig or of a profile.
func explainQuantity(err error, document []byte) error {
	if !errors.Is(err, resource.ErrFormatWrong) && !errors.Is(err, resource.ErrNumeric) && !errors.Is(err, resource.ErrSuffix) {
		return err
	}
	type settings struct{ ReservedMemory json.RawMessage }
	var all struct {
		settings
		Profiles []settings
	}
	if wrong := json.Unmarshal(document, &all); wrong != nil {
		return err
	}
	where := "reservedMemory"
	for i, profile := range all.Profiles {
		if len(profile.ReservedMemory) > 0 && new(resource.Quantity).UnmarshalJSON(profile.ReservedMemory) != nil {
			where = fmt.Sprintf("profiles[%d].reservedMemory", i)
			break
		}
	}
	if len(all.ReservedMemory) > 0 && new(resource.Quantity).UnmarshalJSON(all.ReservedMemory) != nil {
		where = "reservedMemory"
	}
	return errors.New(where + ": " + wantMemory)
}
