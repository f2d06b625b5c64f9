package deviceclasses

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

const deviceHead = `{"apiVersion": "dra.numa/v1alpha1", "kind": "DeviceConfig"`

func TestRequestsHaveConfigsOfBothKinds(t *testing.T) {
	var config RequestConfig
	for _, text := range []string{
		zoneHead + `, "partition": "isolated", "mixed": true}`,
		deviceHead + `, "driver": "vfio-pci"}`,
		zoneHead + `, "mixed": false}`,
		deviceHead + `}`,
	} {
		var err error
		if config, err = config.DecodeOver([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if config.Zone.Partition != PartitionIsolated || config.Zone.Mixed || config.Device.Driver != DriverVFIO {
		t.Errorf("merged: %+v", config)
	}
}

func TestNonsenseInARequestConfigIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":            "unexpected end of JSON input",
		"null":        `kind: "", allowed are ZoneConfig, DeviceConfig, CacheConfig, PerformanceConfig`,
		"[]":          "want a mapping of apiVersion, kind and the fields of the kind, not array",
		`{"kind": 1}`: "kind: want a string, not a number",
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "NodeConfig"}`: `kind: "NodeConfig", allowed are ZoneConfig, DeviceConfig, CacheConfig, PerformanceConfig`,
		`{"apiVersion": "dra.numa/v1", "kind": "DeviceConfig"}`:     `apiVersion: "dra.numa/v1", allowed is dra.numa/v1alpha1`,
		deviceHead + `, "mixed": true}`:                             `unknown field "mixed", allowed are apiVersion, kind, driver, locked`,
		zoneHead + `, "driver": "vfio-pci"}`:                        `unknown field "driver", allowed are apiVersion, kind, cores,`,
		deviceHead + `, "driver": "nvme"}`:                          `driver: "nvme", allowed is vfio-pci`,
	} {
		config, err := RequestConfig{}.DecodeOver([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, config, err, want)
		}
	}
}

// A tenant writes anything into any field. Whatever that is, it is refused with one short
// line that a terminal can show.
func TestHostileRequestConfigsAreRefusedBriefly(t *testing.T) {
	long := strings.Repeat("x", 10<<10) // the largest configuration that an API server accepts
	values := []string{
		`"\u001b]0;owned\u0007\u202e\n\nerror: none"`, `"` + long + `"`, `1e999`, `-9223372036854775809`, `[[[[]]]]`, `{"a": {"b": 1}}`,
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "\"\xff\x1b\"", `"` + strings.Repeat(`\u001b`, 1000) + `"`,
	}
	documents := []string{long, strings.Join(values, ",")}
	for _, value := range values {
		if strings.HasPrefix(value, `"`) {
			documents = append(documents, zoneHead+`, `+value+`: 1}`)
		}
		for _, field := range []string{"cores", "l3", "placement", "partition", "mixed", "memoryPolicy", "kind", "apiVersion"} {
			documents = append(documents, zoneHead+`, "`+field+`": `+value+`}`)
		}
		documents = append(documents, deviceHead+`, "driver": `+value+`}`, value)
	}
	for _, document := range documents {
		_, err := RequestConfig{}.DecodeOver([]byte(document))
		if err == nil {
			t.Errorf("%.80q is accepted", document)
		} else if text := err.Error(); len(text) > maxError || message.Visible(text) != text || strings.Contains(text, "\n") {
			t.Errorf("%.80q: %q", document, text)
		}
	}
}

func FuzzDecodeRequestConfig(f *testing.F) {
	f.Add([]byte(zoneHead + `, "partition": "isolated", "mixed": true, "memoryPolicy": "bind"}`))
	f.Add([]byte(deviceHead + `, "driver": "vfio-pci"}`))
	f.Add([]byte(`{"kind": "\u2028"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := RequestConfig{}.DecodeOver(text)
		if err != nil && (!reflect.DeepEqual(config, RequestConfig{}) || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > maxError) {
			t.Errorf("%q: %+v, %q", text, config, err)
		}
	})
}
