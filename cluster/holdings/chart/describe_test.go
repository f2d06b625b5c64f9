package chart_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// Describe says everything that the driver writes to a claim's status.
func TestDescribeSaysAllOfTheStatus(t *testing.T) {
	for want, share := range map[string]occupied.Share{
		"numa-0: CPUs 4-7, of which 5,7 are kept idle": {Device: "numa-0", CPUs: ptr.To("4-7"), IdleCPUs: "5,7"},
		"numa-0: CPUs 4-7, governor performance, from 3GHz (asked max), to 3GHz, never idle, interrupts away, the kernel does not move nvme0q1 nvme0q2": {
			Device: "numa-0", CPUs: ptr.To("4-7"), Performance: &deviceclasses.PerformanceStatus{
				Asked:       deviceclasses.PerformanceSettings{MinFrequency: "max", MaxFrequency: "3GHz", Governor: "performance", IdleLatency: new(0), Interrupts: "away"},
				Frequencies: []deviceclasses.FrequencyStatus{{Governor: "performance", EnergyPreference: "performance", MinFrequency: "3GHz", MaxFrequency: "3GHz"}},
				Interrupts:  []deviceclasses.StayingInterrupt{{Number: 30, Name: "nvme0q1"}, {Number: 31, Name: "nvme0q2"}},
			},
		},
		"numa-0: CPUs 4-7, energy preference power, awake within 20 us, only its own interrupts": {
			Device: "numa-0", CPUs: ptr.To("4-7"), Performance: &deviceclasses.PerformanceStatus{
				Asked:       deviceclasses.PerformanceSettings{EnergyPreference: "power", IdleLatency: new(20), Interrupts: "own"},
				Frequencies: []deviceclasses.FrequencyStatus{{EnergyPreference: "power"}},
			},
		},
		"numa-0: CPUs 4-7, uncore from 1.8GHz (asked 2GHz), uncore from 2GHz": {
			Device: "numa-0", CPUs: ptr.To("4-7"), Performance: &deviceclasses.PerformanceStatus{
				Asked:  deviceclasses.PerformanceSettings{MinUncoreFrequency: "2GHz"},
				Uncore: []deviceclasses.UncoreStatus{{MinFrequency: "1.8GHz"}, {Die: 1, MinFrequency: "2GHz"}, {Package: 1, MinFrequency: "2GHz"}, {Package: 1, Die: 1}},
			},
		},
		"nic-0000-3b-00-0: PCI 0000:3b:00.0, ens1 ens2": {Device: "nic-0000-3b-00-0", Function: &deviceclasses.FunctionStatus{
			PCI: "0000:3b:00.0", Interfaces: []string{"ens1", "ens2"},
		}},
		"nvme-0000-5f-00-0: PCI 0000:5f:00.0, /dev/vfio/7 /dev/vfio/vfio, bound to vfio-pci": {Device: "nvme-0000-5f-00-0", Function: &deviceclasses.FunctionStatus{
			PCI: "0000:5f:00.0", Nodes: []string{"/dev/vfio/7", "/dev/vfio/vfio"}, Driver: "vfio-pci",
		}},
		"gpu-0000-17-00-0: PCI 0000:17:00.0, CDI device nvidia.com/gpu=0": {Device: "gpu-0000-17-00-0", Function: &deviceclasses.FunctionStatus{
			PCI: "0000:17:00.0", CDIDevice: "nvidia.com/gpu=0",
		}},
		"cache-0-guaranteed: 4 ways, 40% of the bandwidth for each core, group dra-numa.2": {
			Device: "cache-0-guaranteed", Amounts: "ways=4,classes=1,bandwidthPercent=40",
			Cache: &deviceclasses.CacheStatus{Pool: "guaranteed", Group: "dra-numa.2", Ways: 4, BandwidthPercent: 40},
		},
		"cache-0-besteffort: 2 to 5 ways, 20000 MBps of bandwidth, group dra-numa.2": {
			Device: "cache-0-besteffort", Amounts: "ways=2,classes=1,bandwidthMBps=20000",
			Cache: &deviceclasses.CacheStatus{Pool: "besteffort", Group: "dra-numa.2", Ways: 2, MaxWays: 5, BandwidthMBps: 20000},
		},
		"cache-0-shared: the ways of all members, group dra-numa.1": {
			Device: "cache-0-shared", Amounts: "members=1", Cache: &deviceclasses.CacheStatus{Pool: "shared", Group: "dra-numa.1"},
		},
		"cache-1-guaranteed: 1 way, 50% of the bandwidth for each core, not reported as prepared yet": {
			Device: "cache-1-guaranteed", Amounts: "ways=1,classes=1,bandwidthPercent=50",
		},
		"cache-1-shared: the ways of all members, not reported as prepared yet": {Device: "cache-1-shared", Amounts: "members=1"},
	} {
		cluster := occupied.New(t)
		share.Request, share.Node = "r", "n"
		cluster.AddClaim("d/a", share)
		claims := holdings.Of(&cluster.Snapshot).Claims
		if got := chart.Describe(&claims[0].Shares[0]); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
