package kubeletplugin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var someIgnored = pin.Ignored{
	Cgroup: "pod/c", Claim: pin.ClaimRef{UID: "uid-c", Name: "default/c"},
	PolicyFault: pin.PolicyFault{Want: "bind:0", Seen: pin.DefaultMemoryPolicy},
}

// Only the shares with a policy have the condition, and it follows what the hook saw.
func TestConditionMemoryPolicy(t *testing.T) {
	_, statuses := openStored(t)
	grant := statusGrant(cpuset.New(4))
	grant.Shares = append(grant.Shares, ledger.Share{
		Request: "memory", Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, MemoryPolicy: "bind"},
	})
	stored := withShare("c", "uid-c")
	stored.Status.Allocation.Devices.Results = append(stored.Status.Allocation.Devices.Results,
		resourceapi.DeviceRequestAllocationResult{Driver: driver.Name, Pool: node, Device: "numa-0"})
	statuses.set(stored, grant)
	for _, row := range []struct {
		ignored []pin.Ignored
		want    string
	}{
		{nil, "True Requested the container runtime is asked for the policy bind, and no container was seen without it"},
		{[]pin.Ignored{someIgnored}, "False Ignored a container started with the memory policy default, not with bind:0: "},
		{nil, "True Requested "},
	} {
		states := inState(cgroupState{})
		states.withIgnored(row.ignored)
		statuses.observe(states, sharedPoolAway)
		devices := statuses.devices(statuses.claims["uid-c"])
		if condition := findCondition(devices[0], deviceclasses.ConditionMemoryPolicy); condition != nil {
			t.Errorf("condition %+v of a share without a policy", condition)
		}
		condition := findCondition(devices[1], deviceclasses.ConditionMemoryPolicy)
		if got := string(condition.Status) + " " + condition.Reason + " " + condition.Message; !strings.HasPrefix(got, row.want) {
			t.Errorf("condition %s, want %s", got, row.want)
		}
		if reason := findCondition(devices[0], deviceclasses.ConditionExclusive).Reason; reason != reasonKernelPartition {
			t.Errorf("the CPUs are not exclusive any more: %s", reason)
		}
		var seen counters
		seen.see(nil, states)
		if faulty := seen.seen.Load().faulty["uid-c"]; faulty != (len(row.ignored) > 0) {
			t.Errorf("ignored %v: faulty %t", row.ignored, faulty)
		}
	}
}

// Each container is told of once.
func TestIgnoredPolicyIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(reserved())
		events := newPodEvents(api, node, eventPace())
		go events.run(t.Context())
		events.tell(ledger.Grant{Namespace: "default", Name: "c", UID: "uid-c"}, deviceclasses.FaultPolicyIgnored, false, time.Unix(1000, 0), ignoredText(someIgnored.PolicyFault))
		synctest.Wait()
		list, err := api.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			t.Fatalf("events %+v, %v, want one on each of two pods", list, err)
		}
		const note = "Of claim c, a container started with the memory policy default, not with bind:0: the OCI runtime ignores linux.memoryPolicy"
		if event := list.Items[0]; event.Reason != "NUMAMemoryPolicyIgnored" || event.Type != "Warning" || !strings.HasPrefix(event.Note, note) {
			t.Errorf("event %+v, want %s", event, note)
		}
	})
}

// A daemon that starts again does not tell of what the status of the claim says already.
func TestIgnoredPolicyIsToldOnceAcrossRestarts(t *testing.T) {
	for name, row := range map[string]struct {
		reason string
		tells  int
	}{
		"told of":     {deviceclasses.FaultOf(deviceclasses.FaultPolicyIgnored).Reason, 0},
		"not told of": {reasonPolicyRequested, 1},
	} {
		d := recoveredDriver(t)
		claim := allocated("c", "uid-c")
		if _, _, err := d.Prepare(claim, nil); err != nil {
			t.Fatal(err)
		}
		claim.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: driver.Name, Pool: node, Device: "numa-0", Conditions: []metav1.Condition{
			{Type: deviceclasses.ConditionMemoryPolicy, Reason: row.reason},
		}}}
		events := newPodEvents(nil, node, eventPace())
		t.Cleanup(events.queue.ShutDown)
		p := &Plugin{driver: d, podEvents: events, toldIgnored: toldIgnored(map[types.UID]*resourceapi.ResourceClaim{"uid-c": claim, "uid-d": nil})}
		for range 2 {
			p.ObserveIgnored([]pin.Ignored{someIgnored})
		}
		if got := events.queue.Len(); got != row.tells {
			t.Errorf("%s: %d events, want %d", name, got, row.tells)
		}
		p.ObserveIgnored([]pin.Ignored{someIgnored, {Cgroup: "pod/d", Claim: someIgnored.Claim, PolicyFault: someIgnored.PolicyFault}})
		if got := events.queue.Len(); got != row.tells+1 {
			t.Errorf("%s: %d events after another container, want %d", name, got, row.tells+1)
		}
	}
}
