//go:build cgo

package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// makeLibrary compiles test/nvml against NVIDIA's header, for a machine with GPUs
// at these addresses.
func makeLibrary(t *testing.T, addresses ...string) (library nvml.Interface, root string) {
	t.Helper()
	header, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	file := filepath.Join(root, "libnvidia-ml.so.1")
	compiler := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("CC"), "gcc"), "-shared", "-fPIC", "-Wall", "-Werror",
		"-I"+strings.TrimSpace(string(header))+"/pkg/nvml", "-o", file, "../../test/nvml/nvml.c")
	if output, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, output)
	}
	for _, address := range addresses {
		files.Write(t, filepath.Join(root, "sys/bus/pci/devices", address, "class"), "0x038000\n")
	}
	files.Write(t, filepath.Join(root, "sys/bus/pci/devices/0000:00:00.0/class"), "0x060000\n")
	t.Setenv("FAKE_NVML_ROOT", root)
	return nvml.New(nvml.WithLibraryPath(file)), root
}

// TestALibraryIsOpened has what the other tests lack: symbols of a library, and
// structures as NVIDIA's header has them.
func TestALibraryIsOpened(t *testing.T) {
	library, root := makeLibrary(t, "0000:3b:00.0", "0001:af:1f.0")
	file, xid := filepath.Join(root, "run/dra-numa/gpus.json"), filepath.Join(root, "run/dra-numa/xid")
	files.Write(t, file, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- report(ctx, library, &seen{faults: map[string]string{}}, file, func(error) {}) }()
	becomes := func(want string) {
		t.Helper()
		var text []byte
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if text, _ = os.ReadFile(file); string(text) == want {
				return
			}
		}
		t.Fatalf("the report is %s\nwant %s", text, want)
	}
	common := `"model":"Fake NVIDIA GPU","memoryBytes":85899345920,"computeCapability":"9.0","mig":false,`
	first := `{"gpus":[{"address":"0000:3b:00.0","uuid":"GPU-00000000-0000-0000-0000-000000000000",` + common + `"nvlinks":["0001:af:1f.0"]},`
	second := `{"address":"0001:af:1f.0","uuid":"GPU-00000000-0000-0000-0000-000000000001",` + common + `"nvlinks":["0000:3b:00.0"]`
	becomes(first + second + "}]}\n")
	files.Write(t, xid, "0001:af:1f.0 79\n")
	becomes(first + second + `,"fault":"its driver has reported XID 79"}]}` + "\n")
	cancel()
	files.Write(t, xid, "0000:3b:00.0 31\n") // it need not wait to the end
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
