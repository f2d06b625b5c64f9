package deviceclasses

import (
	"reflect"
	"strings"
	"testing"
)

const validNodeConfig = `# of the rack with the old firmware
---
apiVersion: dra.numa/v1alpha1
kind: NodeConfig
reservedCPUs: "0-1,8"
reservedMemory: 256Mi
`

func TestDecodeNodeConfig(t *testing.T) {
	config, err := DecodeNodeConfig([]byte(validNodeConfig))
	if err != nil {
		t.Fatal(err)
	}
	if config.ReservedCPUs != "0-1,8" || config.ReservedMemoryBytes() != 256<<20 {
		t.Errorf("reserved CPUs %q and memory %d", config.ReservedCPUs, config.ReservedMemoryBytes())
	}
	config, err = DecodeNodeConfig([]byte(`{"apiVersion": "dra.numa/v1alpha1", "kind": "NodeConfig"}`))
	if err != nil || config.ReservedCPUs != "" || config.ReservedMemoryBytes() != 0 {
		t.Errorf("without fields: %+v, %v", config, err)
	}
}

func TestNonsenseInANodeConfigIsOneLine(t *testing.T) {
	const head = "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"
	for text, want := range map[string]string{
		"":                           "the file is empty, want one NodeConfig",
		"# nothing\n---\n# nothing":  "the file is empty",
		head + "---\n" + head:        "several documents",
		head + "a: [":                "yaml: line 3",
		head + "a: b: c":             "yaml: ",
		"- kind: NodeConfig":         "want a mapping of apiVersion, kind, reservedCPUs, reservedMemory, not array",
		"kind: NodeConfig":           `apiVersion: "", allowed is dra.numa/v1alpha1`,
		"apiVersion: v1\nkind: Pod":  `kind: "Pod", allowed is NodeConfig`,
		"kind: Pod\nspec: {}":        `kind: "Pod", allowed is NodeConfig`,
		head + "kind: NodeConfig":    `key "kind" already set`,
		head + "reservedcpus: '0'":   `unknown field "reservedcpus", allowed are apiVersion, kind, reservedCPUs, reservedMemory`,
		head + "reservedCPUs: 0":     "reservedCPUs: want a string, not a number",
		head + "reservedCPUs: 1-x":   `reservedCPUs: cpulist "1-x": id "x" is not a decimal number; want a list such as 0-1,8`,
		head + "reservedMemory: lot": "reservedMemory: want a quantity of 0 or more, such as 256Mi",
		head + "reservedMemory: []":  "reservedMemory: ",
		head + "reservedMemory: -1":  "reservedMemory: -1, want a quantity of 0 or more",
	} {
		config, err := DecodeNodeConfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, config, err, want)
		}
	}
}

// The text of the error is held to the types.
func TestFieldsAreNamed(t *testing.T) {
	for kind, config := range map[schema]reflect.Type{
		nodeConfigs(): reflect.TypeFor[NodeConfig](),
		zoneConfigs(): reflect.TypeFor[ZoneConfig](),
	} {
		names := []string{"apiVersion", "kind"}
		for _, field := range reflect.VisibleFields(config) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && len(field.Index) == 1 {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, ", "); got != kind.fields || config.Name() != kind.kind {
			t.Errorf("allowed in a %s are %s, the type %s has %s", kind.kind, kind.fields, config.Name(), got)
		}
	}
}
