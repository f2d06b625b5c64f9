package client

import (
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
)

func TestDecodeSplitsEveryDemoManifest(t *testing.T) {
	files, err := demo.Manifests.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, file := range files {
		data, err := demo.Manifests.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(data)
		if err != nil {
			t.Fatalf("decode %s: %v", file.Name(), err)
		}
		for _, object := range objects {
			kinds[object.GetKind()]++
			if object.GetName() == "" || object.GetNamespace() != "" {
				t.Errorf("%s: %s %q in namespace %q, want a name and no namespace",
					file.Name(), object.GetKind(), object.GetName(), object.GetNamespace())
			}
		}
	}
	if kinds["Pod"] != 4 || kinds["ResourceClaimTemplate"] != 3 {
		t.Errorf("kinds = %v, want 4 pods and 3 claim templates", kinds)
	}
}

func TestApplyNamesTheFileItCannotDecode(t *testing.T) {
	err := (&Cluster{}).Apply(t.Context(), fstest.MapFS{"bad.yaml": {Data: []byte("kind: [")}}, "any")
	if err == nil || err.Error()[:len("decode bad.yaml: ")] != "decode bad.yaml: " {
		t.Errorf("Apply error = %v, want it to begin with %q", err, "decode bad.yaml: ")
	}
}
