package deviceclasses

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const zoneHead = `{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig"`

func TestDecodeZoneConfig(t *testing.T) {
	for fields, want := range map[string]ZoneConfig{
		``: {},
		`, "partition": "isolated", "mixed": true, "memoryPolicy": "weighted-interleave"`: {Partition: PartitionIsolated, Mixed: true, MemoryPolicy: MemoryWeightedInterleave},
		`, "partition": "none", "mixed": false`:                                           {Partition: PartitionNone},
		`, "cores": "one-thread-per-core", "l3": "require", "placement": "distribute"`:    {Cores: CoresOneThreadPerCore, L3: L3Require, Placement: PlacementDistribute},
	} {
		want.APIVersion, want.Kind = APIVersion, ZoneConfigKind
		if got, err := (ZoneConfig{}).DecodeOver([]byte(zoneHead + fields + "}")); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", fields, got, err, want)
		}
	}
}

func TestDecodeOverKeepsWhatIsNotNamed(t *testing.T) {
	class := ZoneConfig{Partition: PartitionIsolated, Mixed: true, MemoryPolicy: MemoryBind}
	got, err := class.DecodeOver([]byte(zoneHead + `, "mixed": false, "memoryPolicy": "interleave"}`))
	if err != nil || got.Partition != PartitionIsolated || got.Mixed || got.MemoryPolicy != MemoryInterleave {
		t.Errorf("%+v, %v", got, err)
	}
	class.Kind = ZoneConfigKind
	if got, err := class.DecodeOver([]byte(`{"apiVersion": "dra.numa/v1alpha1"}`)); err == nil {
		t.Errorf("without a kind: %+v", got)
	}
}

func TestNonsenseInAZoneConfigIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":               "unexpected end of JSON input",
		"{":              "unexpected end of JSON input",
		"null":           `kind: "", allowed is ZoneConfig`,
		"[]":             "want a mapping of apiVersion, kind, cores, l3, placement, coreType, partition, mixed, memoryPolicy, locked, not array",
		`"x"`:            "want a mapping of apiVersion, kind, cores, l3, placement, coreType, partition, mixed, memoryPolicy, locked, not string",
		"kind: x":        "invalid character 'k'",
		zoneHead + "} {": "invalid character '{' after top-level value",
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "NodeConfig"}`: `kind: "NodeConfig", allowed is ZoneConfig`,
		`{"apiVersion": "dra.numa/v1", "kind": "ZoneConfig"}`:       `apiVersion: "dra.numa/v1", allowed is dra.numa/v1alpha1`,
		zoneHead + `, "Mixed": true}`:                               `unknown field "Mixed", allowed are apiVersion, kind, cores, l3, placement, coreType, partition, mixed, memoryPolicy, locked`,
		zoneHead + `, "a\nb": true}`:                                `unknown field "a\nb", allowed are`,
		zoneHead + `, "mixed": true, "mixed": true}`:                `duplicate field "mixed"`,
		zoneHead + `, "mixed": "yes"}`:                              "mixed: want a bool, not a string",
		zoneHead + `, "partition": 1}`:                              "partition: want a string, not a number",
		zoneHead + `, "partition": "Root"}`:                         `partition: "Root", allowed are root, isolated, none`,
		zoneHead + `, "memoryPolicy": "local\n"}`:                   `memoryPolicy: "local\n", allowed are bind, preferred, interleave, weighted-interleave`,
	} {
		config, err := ZoneConfig{}.DecodeOver([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, config, err, want)
		}
	}
}

// decodeAndEncode returns the configuration of a text, and the configuration as JSON. There
// is none of either if the text is refused, in one line.
func decodeAndEncode[C any](t *testing.T, text []byte, decode func([]byte) (C, error)) (config C, again []byte) {
	t.Helper()
	config, err := decode(text)
	if err != nil {
		if !reflect.ValueOf(config).IsZero() || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%q: %+v, %q", text, config, err)
		}
		return config, nil
	}
	if again, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	return config, again
}

func FuzzDecodeZoneConfig(f *testing.F) {
	f.Add([]byte(zoneHead + `, "partition": "isolated", "mixed": true, "memoryPolicy": "bind"}`))
	f.Add([]byte(zoneHead + `, "cores": "thread", "l3": "prefer", "placement": "spread"}`))
	f.Add([]byte(zoneHead + `, "mixed": null, "cores": {}}`))
	f.Add([]byte(`{"kind": "\u2028"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, again := decodeAndEncode(t, text, ZoneConfig{}.DecodeOver)
		if again == nil {
			return
		}
		if got, err := (ZoneConfig{}).DecodeOver(again); err != nil || !reflect.DeepEqual(got, config) {
			t.Errorf("decode(%s) = %+v, %v, want %+v", again, got, err, config)
		}
		if got, err := (ZoneConfig{Partition: PartitionNone, Mixed: true, MemoryPolicy: MemoryBind}).DecodeOver(again); err != nil || config.Partition != "" && got.Partition != config.Partition {
			t.Errorf("over another: %+v, %v", got, err)
		}
	})
}
