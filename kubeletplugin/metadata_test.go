package kubeletplugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// leaveMetadata writes what the helper writes for a request of a claim.
func leaveMetadata(t *testing.T, pluginDir, cdiDir, name string, uid types.UID) {
	t.Helper()
	file := filepath.Join(pluginDir, "dra-device-metadata", "default_"+name, "main", "metadata.json")
	spec := fmt.Sprintf(`{"devices":[{"name":"x","containerEdits":{"mounts":[{"hostPath":%q}]}}]}`, file)
	files.Write(t, file, "{}")
	files.Write(t, filepath.Join(cdiDir, fmt.Sprintf("dra.numa_metadata_%s_main.json", uid)), spec)
}

func listDir(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestStaleMetadataIsRemoved(t *testing.T) {
	watches := allocated("watches", "uid-watches") // with admin access: it holds nothing
	idle := claim("idle", "uid-idle")
	elsewhere := allocated("elsewhere", "uid-elsewhere")
	elsewhere.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Driver: driver.Name, Pool: "node-2"}}
	api := fake.NewClientset(watches, idle, elsewhere, allocated("renewed", "uid-new"))
	refuse(api, "get", "resourceclaims", func(name string) error {
		if name == "unknown" {
			return context.DeadlineExceeded
		}
		return nil
	})
	pluginDir, cdiDir := t.TempDir(), t.TempDir()
	for _, name := range []string{"held", "watches", "idle", "elsewhere", "gone", "unknown"} {
		leaveMetadata(t, pluginDir, cdiDir, name, types.UID("uid-"+name))
	}
	leaveMetadata(t, pluginDir, cdiDir, "renewed", "uid-old")
	for _, name := range []string{".dra.numa_metadata_uid-held_main.json.1.tmp", "dra.numa_metadata_torn_main.json", "dra.numa-claim_uid-held.json", "other.json"} {
		files.Write(t, filepath.Join(cdiDir, name), "")
	}
	if err := os.MkdirAll(filepath.Join(pluginDir, "dra-device-metadata", "default_nobody", "main"), 0o755); err != nil {
		t.Fatal(err)
	}
	grants := []ledger.Grant{{Namespace: "default", Name: "held", UID: "uid-held"}}
	for range 2 {
		if err := RemoveStaleMetadata(t.Context(), api, node, pluginDir, cdiDir, grants); err == nil {
			t.Error("no error about the claim that cannot be read")
		}
		want := []string{
			"dra.numa-claim_uid-held.json", "dra.numa_metadata_uid-held_main.json", "dra.numa_metadata_uid-unknown_main.json",
			"dra.numa_metadata_uid-watches_main.json", "other.json",
		}
		if got := listDir(t, cdiDir); !slices.Equal(got, want) {
			t.Errorf("CDI specs %q, want %q", got, want)
		}
		want = []string{"default_held", "default_unknown", "default_watches"}
		if got := listDir(t, filepath.Join(pluginDir, "dra-device-metadata")); !slices.Equal(got, want) {
			t.Errorf("folders %q, want %q", got, want)
		}
	}
}

func TestNoMetadataIsNoError(t *testing.T) {
	if err := RemoveStaleMetadata(t.Context(), fake.NewClientset(), node, t.TempDir(), t.TempDir(), nil); err != nil {
		t.Error(err)
	}
}
