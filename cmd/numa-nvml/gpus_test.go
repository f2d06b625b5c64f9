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
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
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
	gpus, err := readGPUs(server)
	if err != nil || len(gpus) != 8 {
		t.Fatalf("%d GPUs, %v", len(gpus), err)
	}
	for i, got := range gpus {
		want := fmt.Sprintf(`{"address":"0000:%02x:00.0","uuid":%q,"model":"Mock NVIDIA A100-SXM4-40GB","memoryBytes":42949672960,"computeCapability":"8.0","mig":%t,`+
			`"nvlinks":["0000:c0:00.0"],"cpus":"%d-%d"}`, i, gpu(server, i).UUID, i == 1, 8*i, 8*i+7)
		if i == 2 {
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

func TestErrorsOfTheLibrarySayOfWhat(t *testing.T) {
	for what, damage := range map[string]func(*dgxa100.Server){
		"count GPUs: ERROR_UNKNOWN": func(s *dgxa100.Server) {
			s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
		},
		"read GPU 5: PCI function 0000:05:00.0: ERROR_NO_PERMISSION": func(s *dgxa100.Server) {
			gpu(s, 5).GetNameFunc = func() (string, nvml.Return) { return "", nvml.ERROR_NO_PERMISSION }
		},
		`read GPU 6: PCI address "nowhere"`: func(s *dgxa100.Server) {
			gpu(s, 6).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pciInfo("nowhere"), nvml.SUCCESS }
		},
	} {
		server := dgx(nil)
		damage(server)
		if _, err := readGPUs(server); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
}

// TestTheFileFollows runs the program with a library that tells of three errors: one
// of a program, one of GPU 4, and that it has ended.
func TestTheFileFollows(t *testing.T) {
	events := make(chan nvml.EventData)
	server := dgx(events)
	file := filepath.Join(t.TempDir(), "gpus.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, known := make(chan error), &seen{faults: map[string]string{}}
	go func() { ended <- report(ctx, server, known, file) }()
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
	events <- nvml.EventData{Device: server.Devices[4], EventType: nvml.EventTypeXidCriticalError, EventData: 79}
	faultsBecome(map[string]string{"0000:04:00.0": "its driver has reported XID 79"})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWithoutALibraryItSaysSo(t *testing.T) {
	server := dgx(nil)
	server.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	err := report(t.Context(), server, &seen{}, filepath.Join(t.TempDir(), "gpus.json"))
	if err == nil || !strings.HasPrefix(err.Error(), "open NVIDIA's library: ") {
		t.Errorf("error %v", err)
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
