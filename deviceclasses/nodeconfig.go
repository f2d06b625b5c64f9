package deviceclasses

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// NodeConfigKind is the kind of a NodeConfig.
const NodeConfigKind = "NodeConfig"

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

// nodeConfigs names all fields there are.
func nodeConfigs() schema {
	return schema{NodeConfigKind, "apiVersion, kind, reservedCPUs, reservedMemory"}
}

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
	if err := nodeConfigs().decode(document, &config, &config.TypeMeta); err != nil {
		return NodeConfig{}, explainQuantity(err)
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

// explainQuantity names the only field that is one.
func explainQuantity(err error) error {
	if errors.Is(err, resource.ErrFormatWrong) || errors.Is(err, resource.ErrNumeric) || errors.Is(err, resource.ErrSuffix) {
		return errors.New("reservedMemory: " + wantMemory)
	}
	return err
}
