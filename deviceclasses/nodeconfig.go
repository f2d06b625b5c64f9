package deviceclasses

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// NodeConfigKind is the kind of a NodeConfig.
const NodeConfigKind = "NodeConfig"

// What a NodeConfig may say of Exclusivity. The default is ExclusivityAuto.
const (
	ExclusivityAuto        = "auto"        // the first of those below that the node has
	ExclusivityKernel      = "kernel"      // cpuset partitions
	ExclusivityCooperative = "cooperative" // the container runtime, over NRI
	ExclusivityNone        = "none"        // nobody
)

// What a NodeConfig may say of ZoneBy. The default is ZoneByNUMA.
const (
	ZoneByNUMA    = "numa"    // a NUMA node
	ZoneByL3      = "l3"      // the CPUs of a level-3 cache; the memory is that of NUMA nodes
	ZoneBySocket  = "socket"  // all NUMA nodes of a socket that have CPUs
	ZoneByMachine = "machine" // all NUMA nodes that have CPUs
)

// ZoneBys are all that a NodeConfig may say of ZoneBy, the default first.
func ZoneBys() []string { return []string{ZoneByNUMA, ZoneByL3, ZoneBySocket, ZoneByMachine} }

// NodeConfig is what the operator decides for nodes. It is a file that the daemon
// reads when it starts.
type NodeConfig struct {
	metav1.TypeMeta `json:",inline"`
	NodeSettings    `json:",inline"`

	// Profiles are what holds for some nodes instead: of all profiles whose labels
	// a node has, each field that one names. The last one that names a field holds.
	// The daemon reads the labels when it starts.
	//
	//	profiles: [{nodeSelector: {pool: batch}, reservedCPUs: 0-3}]
	Profiles []NodeProfile `json:"profiles,omitempty"`
}

// NodeSettings are the fields of a NodeConfig that a profile may have as well.
type NodeSettings struct {
	// ReservedCPUs is the list of CPUs that no claim gets. Without it they are the
	// kubelet's reservedSystemCPUs, else the first core.
	//
	//	reservedCPUs: 0-1,8-9
	ReservedCPUs string `json:"reservedCPUs,omitempty"`
	// ReservedMemory is the memory of each NUMA node that no claim gets, 0 or more.
	//
	//	reservedMemory: 256Mi
	ReservedMemory *resource.Quantity `json:"reservedMemory,omitempty"`
	// Exclusivity is who keeps others off the CPUs of claims. A daemon that cannot
	// have what is asked for does not start.
	//
	//	exclusivity: kernel
	Exclusivity string `json:"exclusivity,omitempty"`
	// ZoneBy is what one zone is, the device that claims share.
	//
	//	zoneBy: socket
	ZoneBy string `json:"zoneBy,omitempty"`
	// Devices are the PCI functions that are published as devices; none without it.
	//
	//	devices: {presets: [gpu], exclude: ["0000:3b:00.0"]}
	Devices *DeviceSelection `json:"devices,omitempty"`
}

// NodeProfile is settings of the nodes that have labels.
type NodeProfile struct {
	// NodeSelector is the labels that a node has to have, all of them, one at least.
	//
	//	nodeSelector: {pool: batch, size: large}
	NodeSelector map[string]string `json:"nodeSelector"`
	NodeSettings `json:",inline"`
}

// nodeConfigs names all fields there are.
func nodeConfigs() schema {
	const settings = "reservedCPUs, reservedMemory, exclusivity, zoneBy, devices.presets, devices.include, devices.exclude, devices.bindDrivers"
	return schema{
		kind:   NodeConfigKind,
		fields: "apiVersion, kind, " + settings + ", profiles",
		below:  "nodeSelector, " + settings,
	}
}

// For is what holds for a node with these labels.
func (c NodeConfig) For(nodeLabels map[string]string) NodeSettings {
	settings := c.NodeSettings
	for _, profile := range c.Profiles {
		if labels.SelectorFromSet(profile.NodeSelector).Matches(labels.Set(nodeLabels)) {
			settings.ReservedCPUs = cmp.Or(profile.ReservedCPUs, settings.ReservedCPUs)
			settings.ReservedMemory = cmp.Or(profile.ReservedMemory, settings.ReservedMemory)
			settings.Exclusivity = cmp.Or(profile.Exclusivity, settings.Exclusivity)
			settings.ZoneBy = cmp.Or(profile.ZoneBy, settings.ZoneBy)
			settings.Devices = cmp.Or(profile.Devices, settings.Devices)
		}
	}
	return settings
}

// Profile is where the field comes from that holds for a node with these labels,
// "profiles[1]." or "" for what holds for all nodes: with the field it is a path in
// the NodeConfig. Field is a name as in the file, of NodeSettings.
func (c NodeConfig) Profile(field string, nodeLabels map[string]string) string {
	for i, profile := range slices.Backward(c.Profiles) {
		if labels.SelectorFromSet(profile.NodeSelector).Matches(labels.Set(nodeLabels)) && profile.names(field) {
			return fmt.Sprintf("profiles[%d].", i)
		}
	}
	return ""
}

// names reports whether the field is set.
func (s NodeSettings) names(field string) bool {
	switch field {
	case "reservedCPUs":
		return s.ReservedCPUs != ""
	case "reservedMemory":
		return s.ReservedMemory != nil
	case "exclusivity":
		return s.Exclusivity != ""
	case "zoneBy":
		return s.ZoneBy != ""
	case "devices":
		return s.Devices != nil
	}
	return false
}

// ReservedMemoryBytes is ReservedMemory, or 0 without it.
func (s NodeSettings) ReservedMemoryBytes() uint64 {
	if s.ReservedMemory == nil {
		return 0
	}
	return uint64(s.ReservedMemory.Value())
}

// DecodeNodeConfig reads a file that holds one NodeConfig, in YAML or JSON.
// Whatever it does not know is an error of one line, which names the field and
// what is allowed. Whether the machine has the reserved CPUs it does not know.
func DecodeNodeConfig(text []byte) (NodeConfig, error) {
	document, err := onlyDocument(text)
	if err != nil {
		return NodeConfig{}, err
	}
	var config NodeConfig
	if err := nodeConfigs().decode(document, &config, &config.TypeMeta); err != nil {
		return NodeConfig{}, explainQuantity(err)
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
	for _, field := range []struct {
		name, value string
		allowed     []string
	}{
		{"exclusivity", s.Exclusivity, []string{ExclusivityAuto, ExclusivityKernel, ExclusivityCooperative, ExclusivityNone}},
		{"zoneBy", s.ZoneBy, ZoneBys()},
	} {
		if field.value != "" && !slices.Contains(field.allowed, field.value) {
			return fmt.Errorf("%s: %q, allowed are %s", field.name, field.value, strings.Join(field.allowed, ", "))
		}
	}
	if s.Devices != nil {
		return s.Devices.validate()
	}
	return nil
}

// validateSelector refuses what no node has, or all have.
func (p NodeProfile) validateSelector() error {
	if len(p.NodeSelector) == 0 {
		return errors.New("nodeSelector: want at least one label")
	}
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		if problems := content.IsLabelKey(key); len(problems) > 0 {
			return fmt.Errorf("nodeSelector: key %q: %s", key, problems[0])
		}
		if problems := content.IsLabelValue(p.NodeSelector[key]); len(problems) > 0 {
			return fmt.Errorf("nodeSelector[%s]: %q: %s", key, p.NodeSelector[key], problems[0])
		}
	}
	return nil
}

const wantMemory = "want a quantity of 0 or more, such as 256Mi"

// onlyDocument returns the one document of the file as JSON.
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

// explainQuantity names the only field that is one.
func explainQuantity(err error) error {
	if errors.Is(err, resource.ErrFormatWrong) || errors.Is(err, resource.ErrNumeric) || errors.Is(err, resource.ErrSuffix) {
		return errors.New("reservedMemory: " + wantMemory)
	}
	return err
}
