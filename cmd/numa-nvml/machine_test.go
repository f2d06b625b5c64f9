//go:build cgo

package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// realLibrary is NVIDIA's own library with the GPUs of this machine.
func realLibrary(t testing.TB) nvml.Interface {
	t.Helper()
	library := nvml.New()
	if ret := library.Init(); ret != nvml.SUCCESS {
		t.Skipf("this machine has no GPU that NVIDIA's library opens: %v", ret)
	}
	t.Cleanup(func() { _ = library.Shutdown() })
	return library
}

// TestTheGPUsOfThisMachine compares the report with what nvidia-smi prints and what
// NVIDIA's kernel driver says in /proc.
func TestTheGPUsOfThisMachine(t *testing.T) {
	gpus, err := readGPUs(realLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, gpu := range gpus {
		memory, mig := "[N/A]", "[N/A]"
		if gpu.MemoryBytes != nil {
			memory = fmt.Sprintf("%d", *gpu.MemoryBytes>>20)
		}
		if gpu.MIG != nil {
			mig = map[bool]string{true: "Enabled", false: "Disabled"}[*gpu.MIG]
		}
		got = append(got, []string{"0000" + strings.ToUpper(gpu.Address), gpu.UUID, gpu.Model, memory, gpu.ComputeCapability, mig})
		if gpu.Fault != "" {
			t.Errorf("GPU %s has a fault: %s", gpu.Address, gpu.Fault)
		}
		text, err := os.ReadFile(filepath.Join("/proc/driver/nvidia/gpus", gpu.Address, "information"))
		if err != nil {
			t.Error(err)
		}
		for _, fact := range []string{gpu.UUID, gpu.Model, gpu.Address} {
			if !strings.Contains(string(text), fact) {
				t.Errorf("NVIDIA's kernel driver says nothing of %q:\n%s", fact, text)
			}
		}
		near, err := os.ReadFile(filepath.Join("/sys/bus/pci/devices", gpu.Address, "local_cpulist"))
		if err != nil || strings.TrimSpace(string(near)) != gpu.CPUs.String() {
			t.Errorf("GPU %s is near CPUs %s, the kernel says %s, %v", gpu.Address, gpu.CPUs, near, err)
		}
	}
	output, err := exec.CommandContext(t.Context(), "nvidia-smi",
		"--query-gpu=pci.bus_id,uuid,name,memory.total,compute_cap,mig.mode.current", "--format=csv,noheader,nounits").Output()
	if err != nil {
		t.Fatal(err)
	}
	table := csv.NewReader(strings.NewReader(string(output)))
	table.TrimLeadingSpace = true
	want, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("nvidia-smi (-) and the report (+) differ:\n", diff)
	}
}

// TestAnErrorOfAProgramOnThisMachine runs a program that makes the GPU report an error
// of the program: NUMA_NVML_PROGRAM names it. The library tells of the error, and the
// report does not call it a fault.
func TestAnErrorOfAProgramOnThisMachine(t *testing.T) {
	program := os.Getenv("NUMA_NVML_PROGRAM")
	if program == "" {
		t.Skip("NUMA_NVML_PROGRAM names no program that causes an error on a GPU")
	}
	library := realLibrary(t)
	set, err := new(seen).listen(library)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Free() }()

	file := filepath.Join(t.TempDir(), "gpus.json")
	files.Write(t, file, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	known := &seen{faults: map[string]string{}}
	go func() { ended <- report(ctx, nvml.New(), known, file, func(error) {}) }()
	time.Sleep(time.Second) // so that it listens, too

	output, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	t.Logf("%s: %v\n%s", program, err, output)
	event, ret := set.Wait(10_000)
	if ret != nvml.SUCCESS || event.EventType != nvml.EventTypeXidCriticalError {
		t.Fatalf("the library tells of event %+v, %v", event, ret)
	}
	t.Logf("XID %d", event.EventData)
	time.Sleep(time.Second)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got numa.GPUReport
	if err := json.Unmarshal(text, &got); err != nil || len(got.GPUs) == 0 {
		t.Fatalf("the report is %s, %v", text, err)
	}
	for _, gpu := range got.GPUs {
		if gpu.Fault != "" {
			t.Errorf("XID %d is a fault of GPU %s: %s", event.EventData, gpu.Address, gpu.Fault)
		}
	}
}

// BenchmarkReport is what numa-nvml does every 5 seconds on this machine.
func BenchmarkReport(b *testing.B) {
	library := realLibrary(b)
	known := &seen{faults: map[string]string{}}
	for b.Loop() {
		if _, err := known.report(library); err != nil {
			b.Fatal(err)
		}
	}
}
