package kubeletplugin

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func healthy(name string) helper.DeviceHealth {
	return helper.DeviceHealth{PoolName: node, DeviceName: name, Health: helper.HealthStatusHealthy, HealthCheckTimeout: healthLease}
}

func sick(name, message string) helper.DeviceHealth {
	return helper.DeviceHealth{
		PoolName: node, DeviceName: name, Health: helper.HealthStatusUnhealthy, HealthCheckTimeout: healthLease, Message: message,
	}
}

func sameHealth(a, b helper.DeviceHealth) bool {
	a.LastUpdated, b.LastUpdated = time.Time{}, time.Time{}
	return a == b
}

// Every watcher hears of all devices first, then of each change, and in between
// for as long as somebody looks.
func TestHealthIsReportedOnChangeAndWithinTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth()
		h.set([]helper.DeviceHealth{healthy("numa-0")})
		ctx, cancel := context.WithCancel(t.Context())
		watches := []chan helper.DeviceHealthReport{make(chan helper.DeviceHealthReport, 10), make(chan helper.DeviceHealthReport, 10)}
		ended := make(chan error, 2)
		for _, reports := range watches {
			go func() { ended <- h.watch(ctx, reports) }()
		}
		received := func(when string, want ...helper.DeviceHealth) {
			t.Helper()
			synctest.Wait()
			for i, reports := range watches {
				var got []helper.DeviceHealth
				for len(reports) > 0 {
					got = append(got, (<-reports).Devices...)
				}
				if !slices.EqualFunc(got, want, sameHealth) {
					t.Errorf("%s watcher %d got %+v, want %+v", when, i, got, want)
				}
			}
		}
		received("at first", healthy("numa-0"))
		h.set([]helper.DeviceHealth{healthy("numa-0")})
		received("without a change")
		h.set([]helper.DeviceHealth{sick("numa-0", "why")})
		received("after a change", sick("numa-0", "why"))
		for range 9 {
			time.Sleep(time.Second)
			h.set([]helper.DeviceHealth{sick("numa-0", "why")})
		}
		received("after 9 s")
		time.Sleep(time.Second)
		received("after 10 s", sick("numa-0", "why"))
		time.Sleep(time.Minute)
		received("when nobody looks any more")
		cancel()
		for range watches {
			if err := <-ended; err != nil {
				t.Errorf("watch ended with %v", err)
			}
		}
	})
}

// A watcher whose kubelet does not read ends too.
func TestWatchEndsWhileItSends(t *testing.T) {
	h := newHealth()
	h.set([]helper.DeviceHealth{healthy("numa-0")})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.watch(ctx, make(chan helper.DeviceHealthReport)); err != nil {
		t.Errorf("watch ended with %v", err)
	}
}

func TestProblemsOfClaims(t *testing.T) {
	d := recoveredDriver(t)
	if _, _, err := d.Prepare(allocated("c", "uid-1"), nil); err != nil {
		t.Fatal(err)
	}
	published := []resourceapi.Device{{Name: "numa-1"}, {Name: "numa-0"}}
	check := func(what string, partitions partitionStates, taint, message string) {
		t.Helper()
		publication := d.Publish(func(claimUID types.UID, share ledger.Share) string {
			return partitions.of(claimUID, share).whys[deviceclasses.FaultPartitionInvalid]
		}, cpuset.Set{})
		want := []helper.DeviceHealth{healthy("numa-0"), healthy("numa-1")}
		if message != "" {
			want[0] = sick("numa-0", message)
		}
		if got := deviceHealth(node, published, publication.Problems); !slices.Equal(got, want) {
			t.Errorf("%s: health %+v, want %+v", what, got, want)
		}
		for _, device := range publication.Devices {
			var got string
			for _, tainted := range device.Taints {
				got = tainted.Value
			}
			if device.Name == "numa-0" && got != taint {
				t.Errorf("%s: taint %q, want %q", what, got, taint)
			}
		}
	}
	check("sound", nil, "", "")
	fault := []cgroupState{{given: pin.Pinning{CPUs: cpuset.New(0, 1), Mems: cpuset.New(0)}, fault: deviceclasses.FaultPartitionInvalid, why: "root invalid"}}
	invalid := partitionStates{"uid-1": fault}
	check("invalid", invalid, deviceclasses.FaultPartitionInvalid, "claim default/c: cpus 0-1 are not exclusive: root invalid")
	check("of no claim", partitionStates{"uid-2": fault}, "", "")

	machine := testMachine()
	machine.Online = cpuset.New(0, 2, 3)
	d.SetMachine(machine)
	check("CPU offline", nil, "", "claim default/c: cpus 1 are offline")
	machine.Zones = nil
	d.SetMachine(machine)
	published = published[:1] // its device is gone, and still on its claim
	check("zone offline", invalid, deviceclasses.FaultPartitionInvalid,
		"claim default/c: NUMA node 0 is offline; claim default/c: cpus 1 are offline; claim default/c: cpus 0-1 are not exclusive: root invalid")
}

func TestLongMessagesAreCut(t *testing.T) {
	long := deviceHealth(node, nil, map[string][]string{"numa-0": {strings.Repeat("ü", healthMessageLength)}})
	if message := long[0].Message; len(message) > healthMessageLength || strings.Trim(message, "ü") != "" {
		t.Errorf("message of %d bytes", len(message))
	}
}
