package deviceclasses

import (
	"strings"
	"testing"
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
		"null":        `kind: "", allowed are ZoneConfig, DeviceConfig`,
		"[]":          "want a mapping of apiVersion, kind and the fields of the kind, not array",
		`{"kind": 1}`: "kind: want a string, not a number",
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "NodeConfig"}`: `kind: "NodeConfig", allowed are ZoneConfig, DeviceConfig`,
		`{"apiVersion": "dra.numa/v1", "kind": "DeviceConfig"}`:     `apiVersion: "dra.numa/v1", allowed is dra.numa/v1alpha1`,
		deviceHead + `, "mixed": true}`:                             `unknown field "mixed", allowed are apiVersion, kind, driver`,
		zoneHead + `, "driver": "vfio-pci"}`:                        `unknown field "driver", allowed are apiVersion, kind, cores,`,
		deviceHead + `, "driver": "nvme"}`:                          `driver: "nvme", allowed is vfio-pci`,
	} {
		config, err := RequestConfig{}.DecodeOver([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, config, err, want)
		}
	}
}

func FuzzDecodeRequestConfig(f *testing.F) {
	f.Add([]byte(zoneHead + `, "partition": "isolated", "mixed": true, "memoryPolicy": "bind"}`))
	f.Add([]byte(deviceHead + `, "driver": "vfio-pci"}`))
	f.Add([]byte(`{"kind": "\u2028"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := RequestConfig{}.DecodeOver(text)
		if err != nil && (config != (RequestConfig{}) || strings.ContainsAny(err.Error(), "\r\n")) {
			t.Errorf("%q: %+v, %q", text, config, err)
		}
	})
}
