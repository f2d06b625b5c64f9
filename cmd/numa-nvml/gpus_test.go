//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const nvswitch = "00000000:C0:00.0"

// dgx is NVIDIA's own mock of eight GPUs, and what that leaves out: they are linked
// by a switch, GPU i is near to CPUs 8i to 8i+7, and events come from a channel.
func dgx(events chan nvml.EventData) *dgxa100.Server {
	server := dgxa100.New()
	server.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			select {
			case event := <-events:
				return event, nvml.SUCCESS
			case <-time.After(time.Millisecond):
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
		}, FreeFunc: func() nvml.Return { return nvml.SUCCESS }}, nvml.SUCCESS
	}
	for i := range server.Devices {
		device := gpu(server, i)
		address := pciInfo("0000" + device.PciBusID) // as the library spells it
		device.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return address, nvml.SUCCESS }
		device.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link > 1 {
				return 0, nvml.ERROR_NOT_SUPPORTED
			}
			return nvml.EnableState(link), nvml.SUCCESS // the first is off
		}
		device.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return pciInfo(nvswitch), nvml.SUCCESS }
		device.GetCpuAffinityFunc = func(words int) ([]uint, nvml.Return) {
			set := make([]uint, words)
			set[0] = 0xff << (8 * i)
			return set, nvml.SUCCESS
		}
		device.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeXidCriticalError, nvml.SUCCESS }
		device.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
	}
	return server
}

func gpu(server *dgxa100.Server, i int) *dgxa100.Device { return server.Devices[i].(*dgxa100.Device) }

func pciInfo(address string) (info nvml.PciInfo) {
	for i, c := range []byte(address) {
		info.BusId[i] = int8(c)
	}
	return info
}

func TestAllThatTheLibraryTells(t *testing.T) {
	server := dgx(nil)
	gpu(server, 1).MigMode = nvml.DEVICE_MIG_ENABLE
	gpu(server, 2).GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	gpu(server, 3).GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NO_PERMISSION }
	gpus, err := readGPUs(server)
	if err != nil || len(gpus) != 8 {
		t.Fatalf("%d GPUs, %v", len(gpus), err)
	}
	for i, got := range gpus {
		want := fmt.Sprintf(`{"address":"0000:%02x:00.0","uuid":%q,"model":"Mock NVIDIA A100-SXM4-40GB","memoryBytes":42949672960,"computeCapability":"8.0","mig":%t,`+
			`"nvlinks":["0000:c0:00.0"],"cpus":"%d-%d"}`, i, gpu(server, i).UUID, i == 1, 8*i, 8*i+7)
		if i == 2 || i == 3 {
			want = strings.Replace(want, `"mig":false,`, "", 1)
		}
		if text, _ := json.Marshal(got); string(text) != want {
			t.Errorf("GPU %d is %s\nwant %s", i, text, want)
		}
	}
}

func TestAGPUThatIsLostHasItsAddress(t *testing.T) {
	server := dgx(nil)
	gpu(server, 3).GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	gpus, err := readGPUs(server)
	if err != nil || len(gpus) != 8 {
		t.Fatalf("%d GPUs, %v", len(gpus), err)
	}
	if gpus[3].Address != "0000:03:00.0" || !strings.Contains(gpus[3].Fault, "lost") || gpus[2].Fault != "" {
		t.Errorf("GPU 3 is %+v, GPU 2 %+v", gpus[3], gpus[2])
	}
}

func TestAGPUThatIsNotOpenedAnyMoreIsAsItWasAndLost(t *testing.T) {
	server, known := dgx(nil), &seen{faults: map[string]string{"0000:05:00.0": "its driver has reported XID 48"}}
	if _, err := known.report(server); err != nil {
		t.Fatal(err)
	}
	open := server.DeviceGetHandleByIndexFunc
	server.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 3 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return open(i)
	}
	gpu(server, 4).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_GPU_IS_LOST }
	for range 2 {
		if _, err := known.report(server); err != nil {
			t.Fatal(err)
		}
	}
	faults := map[string]string{}
	for _, gpu := range known.gpus {
		faults[gpu.Address] = gpu.Fault
	}
	if len(known.gpus) != 8 || faults["0000:03:00.0"] != lost || faults["0000:04:00.0"] != lost || faults["0000:02:00.0"] != "" ||
		faults["0000:05:00.0"] != "its driver has reported XID 48" {
		t.Errorf("%d GPUs, faults %q", len(known.gpus), faults)
	}
}

// TestAGPUThatTheLibraryCannotReadIsAsItWasWithAFault has each call fail for one GPU.
func TestAGPUThatTheLibraryCannotReadIsAsItWasWithAFault(t *testing.T) {
	const failed = nvml.ERROR_RESET_REQUIRED
	for call, damage := range map[string]func(*dgxa100.Server, *dgxa100.Device){
		"open": func(s *dgxa100.Server, _ *dgxa100.Device) {
			open := s.DeviceGetHandleByIndexFunc
			s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 5 {
					return nil, failed
				}
				return open(i)
			}
		},
		"address": func(_ *dgxa100.Server, d *dgxa100.Device) {
			d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, failed }
		},
		"no address": func(_ *dgxa100.Server, d *dgxa100.Device) {
			d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pciInfo("nowhere"), nvml.SUCCESS }
		},
		"UUID": func(_ *dgxa100.Server, d *dgxa100.Device) {
			d.GetUUIDFunc = func() (string, nvml.Return) { return "", failed }
		},
		"model": func(_ *dgxa100.Server, d *dgxa100.Device) {
			d.GetNameFunc = func() (string, nvml.Return) { return "", failed }
		},
		"memory": func(_ *dgxa100.Server, d *dgxa100.Device) {
			d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, failed }
		},
		"MIG": func(_ *dgxa100.Server, d *dgxa100.Device) {
			d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, failed }
		},
	} {
		server, known := dgx(nil), &seen{}
		if _, err := known.report(server); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(known.gpus)
		damage(server, gpu(server, 5))
		for range 2 {
			if _, err := known.report(server); err != nil {
				t.Fatalf("%s: %v", call, err)
			}
		}
		i := slices.IndexFunc(known.gpus, func(gpu numa.ReportedGPU) bool { return gpu.Address == "0000:05:00.0" })
		if i < 0 {
			t.Fatalf("%s: GPU 5 is not reported", call)
		}
		if fault := known.gpus[i].Fault; !strings.HasPrefix(fault, "NVIDIA's library cannot read the GPU: ") || !strings.Contains(fault, "ERROR_RESET_REQUIRED") && call != "no address" {
			t.Errorf("%s: the fault is %q", call, fault)
		}
		known.gpus[i].Fault = ""
		slices.SortFunc(known.gpus, func(a, b numa.ReportedGPU) int { return strings.Compare(a.Address, b.Address) })
		if diff := cmp.Diff(want, known.gpus, cmp.Comparer(func(a, b cpuset.Set) bool { return a == b })); diff != "" || known.unnamed != nil {
			t.Errorf("%s: %v, GPUs (-before +after):\n%s", call, known.unnamed, diff)
		}
	}
}

func TestAGPUWhoseAddressWasNeverKnownIsNotReported(t *testing.T) {
	server, known := dgx(nil), &seen{}
	gpu(server, 5).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_NO_PERMISSION }
	if _, err := known.report(server); err != nil || len(known.gpus) != 7 {
		t.Errorf("%d GPUs, %v", len(known.gpus), err)
	}
	if got := fmt.Sprint(known.unnamed); got != "1 GPUs have no address: NVIDIA's library cannot read the GPU: PCI address: ERROR_NO_PERMISSION" {
		t.Error(got)
	}
}

// A set is not usable after it has not taken a GPU (nvmlDeviceRegisterEvents in nvml.h).
func TestAGPUWhoseErrorsAreNotToldHasAFaultAndTheOthersAreHeard(t *testing.T) {
	server, known := dgx(nil), &seen{}
	var sets, freed int
	create := server.EventSetCreateFunc
	server.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		set, ret := create()
		sets++
		set.(*mock.EventSet).FreeFunc = func() nvml.Return { freed++; return nvml.SUCCESS }
		return set, ret
	}
	heard := map[int]nvml.EventSet{}
	for i := range server.Devices {
		gpu(server, i).RegisterEventsFunc = func(_ uint64, set nvml.EventSet) nvml.Return {
			if i == 2 || i == 5 {
				return nvml.ERROR_UNKNOWN
			}
			heard[i] = set
			return nvml.SUCCESS
		}
	}
	set, err := known.listen(server)
	if err != nil {
		t.Fatal(err)
	}
	for i := range server.Devices {
		if heard[i] != set && i != 2 && i != 5 {
			t.Errorf("the set does not have GPU %d", i)
		}
	}
	if sets != freed+1 {
		t.Errorf("%d sets, %d are freed", sets, freed)
	}
	if _, err := known.report(server); err != nil {
		t.Fatal(err)
	}
	for i, gpu := range known.gpus {
		if want := map[int]string{2: "NVIDIA's library does not tell of errors of the GPU: ERROR_UNKNOWN", 5: "NVIDIA's library does not tell of errors of the GPU: ERROR_UNKNOWN"}[i]; gpu.Fault != want {
			t.Errorf("GPU %d has fault %q, want %q", i, gpu.Fault, want)
		}
	}
}

func TestErrorsOfTheLibrarySayOfWhat(t *testing.T) {
	for what, damage := range map[string]func(*dgxa100.Server){
		"count GPUs: ERROR_UNKNOWN": func(s *dgxa100.Server) {
			s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
		},
		"create a set of events: ERROR_UNKNOWN": func(s *dgxa100.Server) {
			s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_UNKNOWN }
		},
		"open NVIDIA's library: ERROR_LIBRARY_NOT_FOUND": func(s *dgxa100.Server) {
			s.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
		},
	} {
		server := dgx(nil)
		damage(server)
		err := report(t.Context(), server, &seen{}, filepath.Join(t.TempDir(), "gpus.json"), func(error) {})
		if err == nil || err.Error() != what {
			t.Errorf("error %v, want %q", err, what)
		}
	}
}

// TestTheFileFollows runs the program with a library that tells of three errors: one of a
// program, one of GPU 4, which it cannot read from then on, and one of GPU 2.
func TestTheFileFollows(t *testing.T) {
	events := make(chan nvml.EventData, 1)
	server := dgx(events)
	var fails atomic.Bool
	gpu(server, 4).GetNameFunc = func() (string, nvml.Return) {
		if fails.Load() {
			return "", nvml.ERROR_RESET_REQUIRED
		}
		return "A100", nvml.SUCCESS
	}
	file := filepath.Join(t.TempDir(), "gpus.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, known := make(chan error), &seen{faults: map[string]string{}}
	go func() { ended <- report(ctx, server, known, file, func(error) {}) }()
	faultsBecome := func(want map[string]string) {
		t.Helper()
		var got map[string]string
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			text, _ := os.ReadFile(file)
			var report numa.GPUReport
			if json.NewDecoder(bytes.NewReader(text)).Decode(&report) != nil {
				continue
			}
			got = map[string]string{}
			for _, gpu := range report.GPUs {
				if gpu.Fault != "" {
					got[gpu.Address] = gpu.Fault
				}
			}
			if len(report.GPUs) == 8 && cmp.Equal(got, want) {
				return
			}
		}
		t.Fatalf("faults are %v, want %v", got, want)
	}
	faultsBecome(map[string]string{})
	events <- nvml.EventData{Device: server.Devices[1], EventType: nvml.EventTypeXidCriticalError, EventData: 31}
	fails.Store(true)
	events <- nvml.EventData{Device: server.Devices[4], EventType: nvml.EventTypeXidCriticalError, EventData: 48}
	const cannot = "NVIDIA's library cannot read the GPU: ERROR_RESET_REQUIRED"
	faultsBecome(map[string]string{"0000:04:00.0": cannot})
	events <- nvml.EventData{Device: server.Devices[2], EventType: nvml.EventTypeXidCriticalError, EventData: 79}
	faultsBecome(map[string]string{"0000:02:00.0": "its driver has reported XID 79", "0000:04:00.0": cannot})
	fails.Store(false)
	faultsBecome(map[string]string{"0000:02:00.0": "its driver has reported XID 79", "0000:04:00.0": "its driver has reported XID 48"})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestArguments(t *testing.T) {
	parse := func(args ...string) (string, cli.LogFormat, error) {
		return parse(cli.Call{Args: args, Stdout: io.Discard})
	}
	if file, format, err := parse(); file != "/run/dra-numa/gpus.json" || format != cli.LogText || err != nil {
		t.Errorf("file %q, format %s, %v", file, format, err)
	}
	if _, format, err := parse("--logging-format=json"); format != cli.LogJSON || err != nil {
		t.Errorf("format %s, %v", format, err)
	}
	for _, arg := range []string{"x", "-x"} {
		if _, _, err := parse(arg); err == nil {
			t.Errorf("%q is taken", arg)
		}
	}
}
