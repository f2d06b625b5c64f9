package deviceclasses

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// What a configuration file has to say of itself.
const (
	APIVersion     = "dra.numa/v1alpha1"
	NodeConfigKind = "NodeConfig"
)

// NodeConfig is what the operator decides for a node.
type NodeConfig struct {
	metav1.TypeMeta `json:",inline"`

	// ReservedCPUs is the list of CPUs that no claim gets, such as 0-1,8. If
	// it is empty, the driver reserves as if there were no file.
	ReservedCPUs string `json:"reservedCPUs,omitempty"`
	// ReservedMemory is the memory of each zone that no claim gets, such as
	// 256Mi; 0 ≤ ReservedMemory.
	ReservedMemory *resource.Quantity `json:"reservedMemory,omitempty"`
}

// nodeConfigFields are all there are.
const nodeConfigFields = "apiVersion, kind, reservedCPUs, reservedMemory"

// ReservedMemoryBytes is ReservedMemory, or 0 without it.
func (c NodeConfig) ReservedMemoryBytes() uint64 {
	if c.ReservedMemory == nil {
		return 0
	}
	return uint64(c.ReservedMemory.Value())
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
	unknown, err := kjson.UnmarshalStrict(document, &config)
	if err != nil {
		return NodeConfig{}, explain(err)
	}
	if config.Kind != NodeConfigKind { // before the fields, which are those of another kind
		return NodeConfig{}, fmt.Errorf("kind: %q, allowed is %s", config.Kind, NodeConfigKind)
	}
	if config.APIVersion != APIVersion {
		return NodeConfig{}, fmt.Errorf("apiVersion: %q, allowed is %s", config.APIVersion, APIVersion)
	}
	if len(unknown) > 0 {
		return NodeConfig{}, fmt.Errorf("%w, allowed are %s", unknown[0], nodeConfigFields)
	}
	if err := config.validate(); err != nil {
		return NodeConfig{}, err
	}
	return config, nil
}

func (c NodeConfig) validate() error {
	if _, err := cpuset.Parse(c.ReservedCPUs); err != nil {
		return fmt.Errorf("reservedCPUs: %w; want a list such as 0-1,8", err)
	}
	if c.ReservedMemory != nil && c.ReservedMemory.Sign() < 0 {
		return fmt.Errorf("reservedMemory: %s, %s", c.ReservedMemory, wantMemory)
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

// explain says which field a value does not suit.
func explain(err error) error {
	var unsuitable *json.UnmarshalTypeError
	switch {
	case errors.As(err, &unsuitable) && unsuitable.Field == "":
		return fmt.Errorf("want a mapping of %s, not a file with %s", nodeConfigFields, unsuitable.Value)
	case errors.As(err, &unsuitable):
		return fmt.Errorf("%s: want a %s, not a %s", unsuitable.Field, unsuitable.Type, unsuitable.Value)
	case errors.Is(err, resource.ErrFormatWrong), errors.Is(err, resource.ErrNumeric), errors.Is(err, resource.ErrSuffix):
		return errors.New("reservedMemory: " + wantMemory) // the only quantity
	}
	return oneLine(err)
}

// oneLine keeps messages of other modules to the rule that an error is a line.
func oneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }
