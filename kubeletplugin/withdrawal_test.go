package kubeletplugin

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// offered is a device with a capacity of CPUs and one of memory, 0 for none, that may have a
// taint.
func offered(name string, cpus, memory int64, effect resourceapi.DeviceTaintEffect) resourceapi.Device {
	device := resourceapi.Device{Name: name, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}}
	for capacity, amount := range map[resourceapi.QualifiedName]int64{"cpu": cpus, "memory": memory} {
		if amount > 0 {
			device.Capacity[capacity] = resourceapi.DeviceCapacity{Value: *resource.NewQuantity(amount, resource.DecimalSI)}
		}
	}
	if effect != "" {
		device.Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: effect}}
	}
	return device
}

func TestWithdrawalsTakeBackAndGiveNothing(t *testing.T) {
	const none, noSchedule, noExecute = resourceapi.DeviceTaintEffectNone, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute
	whole := offered("a", 8, 4, "")
	for name, row := range map[string]struct{ wanted, want []resourceapi.Device }{
		"gone":                {nil, nil},
		"the same":            {[]resourceapi.Device{whole}, []resourceapi.Device{whole}},
		"a new one":           {[]resourceapi.Device{whole, offered("b", 1, 0, "")}, []resourceapi.Device{whole}},
		"another one":         {[]resourceapi.Device{offered("b", 1, 0, "")}, nil},
		"tainted":             {[]resourceapi.Device{offered("a", 8, 4, noSchedule)}, []resourceapi.Device{offered("a", 8, 4, noSchedule)}},
		"evicted":             {[]resourceapi.Device{offered("a", 8, 4, noExecute)}, []resourceapi.Device{offered("a", 8, 4, noExecute)}},
		"remarked":            {[]resourceapi.Device{offered("a", 8, 4, none)}, []resourceapi.Device{whole}},
		"without memory":      {[]resourceapi.Device{offered("a", 8, 0, "")}, []resourceapi.Device{offered("a", 8, 0, "")}},
		"with fewer CPUs":     {[]resourceapi.Device{offered("a", 7, 4, "")}, []resourceapi.Device{offered("a", 7, 4, "")}},
		"with more CPUs":      {[]resourceapi.Device{offered("a", 9, 4, "")}, []resourceapi.Device{whole}},
		"more and less":       {[]resourceapi.Device{offered("a", 9, 3, "")}, nil},
		"more, but tainted":   {[]resourceapi.Device{offered("a", 9, 4, noSchedule)}, nil},
		"more, beside one":    {[]resourceapi.Device{offered("b", 1, 0, ""), offered("a", 8, 3, "")}, []resourceapi.Device{offered("a", 8, 3, "")}},
		"no longer published": {[]resourceapi.Device{}, nil},
	} {
		if diff := cmp.Diff(row.want, withdrawn([]resourceapi.Device{whole}, row.wanted)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	tainted := []resourceapi.Device{offered("a", 8, 4, noSchedule)}
	if diff := cmp.Diff(tainted, withdrawn(tainted, []resourceapi.Device{whole})); diff != "" {
		t.Errorf("a taint that is over (-want +got):\n%s", diff)
	}
}

// What is taken back would be given to claims while it waits.
func TestWithdrawalsAreNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		all := append(testDevices(), cardDevices()...)
		p.set(all)
		becomes(t, p, "numa-0 nic-1 nic-0")
		for p.pace.TryAccept() { // as after a fault that came and went
		}
		before := c.stored()
		stored := func(within time.Duration, want string, writes int) {
			t.Helper()
			if !until(within, func() bool { return names(p) == want }) || c.stored()-before != writes {
				t.Fatalf("within %s published are %q by %d writes, want %q by %d", within, names(p), c.stored()-before, want, writes)
			}
		}
		p.set(slices.Delete(slices.Clone(all), 1, 2))
		stored(100*time.Millisecond, "numa-0 nic-0", 1)
		time.Sleep(200 * time.Millisecond)
		p.set(all[:1])
		time.Sleep(200 * time.Millisecond)
		p.set(testDevices("partition-invalid"))
		stored(time.Second, "numa-0", 2)
		if !isTainted(&p.slices.own()[0].Spec.Devices[0]) {
			t.Error("the zone has no taint")
		}
		p.set(all) // what comes back waits for the pace
		time.Sleep(10 * time.Second)
		stored(time.Second, "numa-0", 2)
		stored(time.Minute, "numa-0 nic-1 nic-0", 4) // two slices: the functions of one card share counters
	})
}
