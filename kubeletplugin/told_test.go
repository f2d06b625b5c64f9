package kubeletplugin

import (
	"reflect"
	"slices"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A daemon that starts takes nothing back before it has looked, and tells nothing twice.
func TestFaultOfBeforeARestartStays(t *testing.T) {
	c, d, before := newCluster(), recoveredDriver(t), openStatuses(t, nil)
	claim := allocated("c", "uid-1")
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "a", UID: "pod-a"}}
	grant, _, err := d.Prepare(claim, nil)
	if err != nil {
		t.Fatal(err)
	}
	live := []pin.Live{{Cgroup: "pod/c", Claims: given("uid-1", 0, 1), Fault: "root invalid"}}
	before.observe(partitionStates{"uid-1": {{given: live[0].Claims[0].Pinning, fault: deviceclasses.FaultPartitionInvalid, why: "root invalid"}}}, sharedPoolAway)
	before.set(claim, grant)
	claim.Status.Devices = before.devices(before.claims["uid-1"])
	if _, err := c.ResourceV1().ResourceClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := startServedWith(t, c, d, t.TempDir(), t.TempDir(), map[types.UID]*resourceapi.ResourceClaim{"uid-1": claim})
	reason := func() string {
		t.Helper()
		current, err := c.ResourceV1().ResourceClaims("default").Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return findCondition(current.Status.Devices[0], deviceclasses.ConditionExclusive).Reason
	}
	check := func(when string, faulty bool) {
		t.Helper()
		if devices := *s.counters.devices.Load(); isTainted(&devices[0]) != faulty {
			t.Errorf("%s the zone has the taints %v, want any: %t", when, devices[0].Taints, faulty)
		}
		if now := reason(); (now == "PartitionInvalid") != faulty {
			t.Errorf("%s the condition has the reason %s", when, now)
		}
	}
	check("before a look", true)
	s.statuses.set(claim, grant) // the kubelet asks again
	time.Sleep(100 * time.Millisecond)
	check("prepared again", true)
	s.Observe(live)
	time.Sleep(100 * time.Millisecond)
	check("with the fault", true)
	if c.events.Load() > 0 {
		t.Errorf("%d events about a fault that was told of", c.events.Load())
	}
	live[0].Fault = ""
	s.Observe(live)
	if !until(time.Minute, func() bool { return c.events.Load() == 1 && reason() == reasonKernelPartition }) {
		t.Errorf("%d events when it is over, want 1, and reason %s", c.events.Load(), reason())
	}
	check("without it", false)
}

// What was told of another allocation, or is a fault of another kind, is not told of this one.
func TestToldFaultsAreOfTheSharesOnRecord(t *testing.T) {
	statuses := openStatuses(t, nil)
	grant := statusGrant(cpuset.New(4))
	statuses.observe(inState(invalid), sharedPoolAway)
	claim := withShare("c", "uid-c")
	statuses.set(claim, grant)
	claim.Status.Devices = statuses.devices(statuses.claims["uid-c"])
	since := claim.Status.Devices[0].Conditions[1].LastTransitionTime.Time
	for name, row := range map[string]struct {
		change func()
		want   partitionStates
	}{
		"the same": {func() {}, partitionStates{"uid-c": {{
			given: pin.Pinning{CPUs: cpuset.New(4), Mems: cpuset.New(1)}, fault: deviceclasses.FaultPartitionInvalid, why: "root invalid", since: since,
		}}}},
		"another share": {func() { grant.Shares[0].ShareID = "share-2" }, partitionStates{}},
		"renewed":       {func() { claim.UID = "uid-d" }, partitionStates{}},
		"gone":          {func() { claim = nil }, partitionStates{}},
	} {
		t.Run(name, func(t *testing.T) {
			wasGrant, wasClaim := grant, claim
			grant.Shares, claim = slices.Clone(grant.Shares), claim.DeepCopy()
			row.change()
			if got := toldFaults(map[types.UID]*resourceapi.ResourceClaim{"uid-c": claim}, []ledger.Grant{grant}, node); !reflect.DeepEqual(got, row.want) {
				t.Errorf("told are %+v, want %+v", got, row.want)
			}
			grant, claim = wasGrant, wasClaim
		})
	}
}
