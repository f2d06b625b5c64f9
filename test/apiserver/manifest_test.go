package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// wishes use every part of a wish.
func wishes() map[string]manifest.Wish {
	amount := resource.MustParse
	return map[string]manifest.Wish{
		"one-share": {
			Class: "zone.dra.numa", CPUs: 8, Memory: amount("16Gi"), Shares: 1,
			Config: deviceclasses.RequestConfig{
				Zone:        deviceclasses.ZoneConfig{Partition: deviceclasses.PartitionIsolated, MemoryPolicy: deviceclasses.MemoryBind},
				Performance: deviceclasses.PerformanceConfig{PerformanceSettings: deviceclasses.PerformanceSettings{MinFrequency: "base", Interrupts: deviceclasses.InterruptsAway}},
			},
		},
		"first-available": {
			Class: "zone.dra.numa", CPUs: 8, Memory: amount("16Gi"), Shares: 1, Parts: 2,
			Places: []string{manifest.OneNode, manifest.OneSocket, manifest.Anywhere}, Config: deviceclasses.RequestConfig{Zone: deviceclasses.ZoneConfig{Mixed: true}},
		},
		"apart": {
			Class: "zone.dra.numa", CPUs: 4, Hugepages: map[string]resource.Quantity{"1Gi": amount("2Gi")},
			Shares: 2, Apart: true, Same: manifest.SameSocket,
			Filter: manifest.Filter{
				CoreType: "standard", Exclusivity: "kernel",
				MemoryTier: new(int64(4)), Socket: new(int64(1)), Node: new(int64(2)),
			},
		},
		"devices": {
			Class: "zone.dra.numa", CPUs: 4, Shares: 1, Same: manifest.SameNode,
			Devices: []manifest.Devices{{Class: "nic.example.com", Count: 2}, {Class: "gpu.example.com", Count: 1}},
		},
	}
}

// decode reads a manifest as kubectl would, and refuses unknown fields.
func decode(t *testing.T, object manifest.Object, err error, into any) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// TestGeneratedManifestsAreAccepted and kept but for the defaults.
func TestGeneratedManifestsAreAccepted(t *testing.T) {
	api := clientFor(t, "APISERVER_KUBECONFIG").ResourceV1()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	for name, wish := range wishes() {
		var claim resourceapi.ResourceClaim
		object, err := manifest.Claim(manifest.Metadata{Name: name, Namespace: "default"}, wish)
		decode(t, object, err, &claim)
		kept, err := api.ResourceClaims("default").Create(t.Context(), &claim, dryRun)
		if err != nil {
			t.Errorf("create claim %s: %v", name, err)
			continue
		}
		sent, got := claim.Spec.Devices, kept.Spec.Devices
		if diff := cmp.Diff(sent.Constraints, got.Constraints); diff != "" ||
			len(got.Config) != len(sent.Config) || len(got.Requests) != len(sent.Requests) {
			t.Errorf("of claim %s the server keeps %+v\n%s", name, kept.Spec, diff)
		}
		var template resourceapi.ResourceClaimTemplate
		object, err = manifest.Template(manifest.Metadata{Name: name, Namespace: "default"}, wish)
		decode(t, object, err, &template)
		if _, err := api.ResourceClaimTemplates("default").Create(t.Context(), &template, dryRun); err != nil {
			t.Errorf("create template %s: %v", name, err)
		}
		var class resourceapi.DeviceClass
		object, err = manifest.Class(name, wish.Filter, wish.Config)
		decode(t, object, err, &class)
		if _, err := api.DeviceClasses().Create(t.Context(), &class, dryRun); err != nil {
			t.Errorf("create class %s: %v", name, err)
		}
	}
}
