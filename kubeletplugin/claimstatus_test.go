package kubeletplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const shareUID = types.UID("0b1c2d3e-0000-4000-8000-000000000001")

// openStatuses ends the goroutines that the queue starts, which run need not do.
func openStatuses(t *testing.T, api kubernetes.Interface) *claimStatuses {
	t.Helper()
	statuses := newClaimStatuses(api, testConfig())
	t.Cleanup(statuses.queue.ShutDown)
	return statuses
}

// withShare is a claim that the share of statusGrant is allocated to.
func withShare(name string, uid types.UID) *resourceapi.ResourceClaim {
	claim := allocated(name, uid)
	claim.Status.Allocation.Devices.Results[0].Device, claim.Status.Allocation.Devices.Results[0].ShareID = "numa-1", new(shareUID)
	return claim
}

// openStored is openStatuses with an API server that has claim uid-c.
func openStored(t *testing.T) (*fake.Clientset, *claimStatuses) {
	t.Helper()
	api := fake.NewClientset(withShare("c", "uid-c"))
	return api, openStatuses(t, api)
}

func statusGrant(cpus cpuset.Set) ledger.Grant {
	return ledger.Grant{Namespace: "default", Name: "c", UID: "uid-c", Shares: []ledger.Share{
		{Request: "main", Device: "numa-1", ShareID: shareUID, Kind: &ledger.ZoneShare{NUMANodes: []int{1}, CPUs: cpus, Partition: "root", MemoryBytes: 1 << 30, Why: "2 whole cores"}},
	}}
}

func TestClaimStatusSaysWhatWasPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, statuses := openStored(t)
		statuses.now = func() time.Time { return time.Unix(1000, 0) }
		go statuses.run(t.Context())
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4, 5, 6, 7)))
		claim := waitStatus(t, api)
		device := claim.Status.Devices[0]
		if device.Driver != driver.Name || device.Pool != node || device.Device != "numa-1" || *device.ShareID != string(shareUID) {
			t.Errorf("status is of device %s/%s/%s share %s", device.Driver, device.Pool, device.Device, *device.ShareID)
		}
		var data deviceclasses.ZoneStatus
		want := deviceclasses.ZoneStatus{CPUs: cpuset.New(4, 5, 6, 7), Mems: cpuset.New(1), Partition: "root", Scope: "container", Why: "2 whole cores"}
		if err := json.Unmarshal(device.Data.Raw, &data); err != nil || data != want {
			t.Errorf("data %s, %v", device.Data.Raw, err)
		}
		for _, want := range []string{deviceclasses.ConditionReady, deviceclasses.ConditionExclusive} {
			if condition := findCondition(device, want); condition == nil || condition.Status != metav1.ConditionTrue {
				t.Errorf("condition %s is %+v", want, condition)
			}
		}
		// The kubelet repeats Prepare when it restarts: nothing is written then, also
		// when the API server has sorted the fields.
		writes := len(api.Actions())
		statuses.now = func() time.Time { return time.Unix(2000, 0) }
		claim.Status.Devices[0].Data.Raw = []byte(`{"why":"2 whole cores","scope":"container","partition":"root","mems":"1","cpus":"4-7"}`)
		statuses.set(claim, statusGrant(cpuset.New(4, 5, 6, 7)))
		if statuses.queue.Len() != 0 || len(api.Actions()) != writes {
			t.Error("a claim that says so already is written again")
		}
	})
}

// A partition that is lost changes one condition, and its time; back again, the
// other time stays.
func TestClaimStatusFollowsThePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, statuses := openStored(t)
		var now atomic.Int64
		statuses.now = func() time.Time { return time.Unix(now.Load(), 0) }
		go statuses.run(t.Context())
		now.Store(1000)
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		waitReason(t, api, reasonKernelPartition)
		for at, row := range []struct {
			state  cgroupState
			reason string
		}{
			{invalid, "PartitionInvalid"},
			{cgroupState{downgraded: true}, reasonShared},
			{cgroupState{}, reasonKernelPartition},
		} {
			now.Store(int64(2000 + at))
			statuses.observe(inState(row.state), sharedPoolAway)
			device := waitReason(t, api, row.reason)
			if ready := findCondition(device, deviceclasses.ConditionReady); ready.LastTransitionTime.Unix() != 1000 {
				t.Errorf("%s: condition Ready turned at %s", row.reason, ready.LastTransitionTime)
			}
		}
		device := waitReason(t, api, reasonKernelPartition)
		if turned := findCondition(device, deviceclasses.ConditionExclusive).LastTransitionTime.Unix(); turned != 2002 {
			t.Errorf("condition Exclusive turned at %d, want 2002", turned)
		}
		writes := len(api.Actions())
		for range 3 {
			statuses.observe(inState(cgroupState{}), sharedPoolAway)
		}
		if statuses.queue.Len() != 0 || len(api.Actions()) != writes {
			t.Error("what is still so is written again")
		}
	})
}

// A partition that comes and goes each second must not keep the API server busy. What is
// written in the end is how it ends.
func TestStatusOfAFlickeringPartitionIsWrittenNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, statuses := openStored(t)
		go statuses.run(t.Context())
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		waitReason(t, api, reasonKernelPartition)
		api.ClearActions()
		states := []cgroupState{invalid, {}}
		for second := range 60 {
			statuses.observe(inState(states[second%2]), sharedPoolAway)
			time.Sleep(time.Second)
		}
		if writes := verbs(api)["update"]; writes < 6 || writes > 12 || len(api.Actions()) != writes {
			t.Errorf("%d writes and %d requests in a minute, want 6 to 12, and no others", writes, len(api.Actions()))
		}
		statuses.observe(inState(states[0]), sharedPoolAway)
		time.Sleep(2 * statusWait)
		waitReason(t, api, "PartitionInvalid")
	})
}

// An API server that is overloaded gets fewer and fewer requests of a node, however many of
// its claims have changed. When it can serve again, each claim costs one request.
func TestStatusesWaitForAnOverloadedAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const claims = 8
		var stored []runtime.Object
		for i := range claims {
			stored = append(stored, withShare(fmt.Sprint("c", i), types.UID(fmt.Sprint("uid-", i))))
		}
		api := fake.NewClientset(stored...)
		var overloaded atomic.Bool
		overloaded.Store(true)
		answers := []error{context.DeadlineExceeded, apierrors.NewTooManyRequests("busy", 1), apierrors.NewInternalError(io.ErrUnexpectedEOF)}
		asked := 0
		refuse(api, "*", "resourceclaims", func(string) error {
			asked++
			if !overloaded.Load() {
				return nil
			}
			return answers[asked%len(answers)]
		})
		statuses := openStatuses(t, api)
		go statuses.run(t.Context())
		for i := range claims {
			grant := statusGrant(cpuset.New(i))
			grant.Name, grant.UID = fmt.Sprint("c", i), types.UID(fmt.Sprint("uid-", i))
			statuses.set(withShare(grant.Name, grant.UID), grant)
		}
		time.Sleep(5 * time.Minute)
		if requests := len(api.Actions()); requests < 6 || requests > 16 {
			t.Errorf("%d requests in 5 minutes, want 6 to 16", requests)
		}
		overloaded.Store(false)
		api.ClearActions()
		time.Sleep(2 * lastPause)
		if got, want := verbs(api), map[string]int{"update": claims}; !maps.Equal(got, want) {
			t.Errorf("requests %v once the API server is well, want %v", got, want)
		}
	})
}

// The API server may have carried out an update that it did not answer. What it has then
// is not what the daemon knows.
func TestStatusAfterAnUpdateWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, statuses := openStored(t)
		go statuses.run(t.Context())
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		waitReason(t, api, reasonKernelPartition)
		lost := true
		api.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !lost {
				return false, nil, nil
			}
			lost = false
			update := action.(clienttesting.UpdateAction)
			if err := api.Tracker().Update(update.GetResource(), update.GetObject(), update.GetNamespace()); err != nil {
				t.Error(err)
			}
			return true, nil, context.DeadlineExceeded
		})
		statuses.observe(inState(invalid), sharedPoolAway)
		synctest.Wait()
		waitReason(t, api, "PartitionInvalid")
		statuses.observe(inState(cgroupState{}), sharedPoolAway) // as the daemon knew the claim last
		time.Sleep(2 * lastPause)
		waitReason(t, api, reasonKernelPartition)
	})
}

// What the API server refuses of one claim holds up no other.
func TestStatusThatIsRefusedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(withShare("a", "uid-a"), withShare("c", "uid-c"))
		refuse(api, "update", "resourceclaims", func(name string) error {
			if name == "a" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "resourceclaims"}, name, errors.New("by a policy"))
			}
			return nil
		})
		statuses := openStatuses(t, api)
		refused := statusGrant(cpuset.New(5))
		refused.Name, refused.UID = "a", "uid-a"
		statuses.set(withShare("a", "uid-a"), refused)
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		go statuses.run(t.Context())
		synctest.Wait()
		if got, want := verbs(api), map[string]int{"update": 2}; !maps.Equal(got, want) {
			t.Errorf("requests %v at once, want %v", got, want)
		}
	})
}

// A webhook that fails for the claims of one namespace is no API server that is overloaded.
func TestClaimsWithInternalErrorsHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(withShare("a", "uid-a"), withShare("b", "uid-b"), withShare("c", "uid-c"))
		refuse(api, "update", "resourceclaims", func(name string) error {
			if name != "c" {
				return apierrors.NewInternalError(errors.New("calling webhook"))
			}
			return nil
		})
		statuses := openStatuses(t, api)
		go statuses.run(t.Context())
		for _, name := range []string{"a", "b"} {
			refused := statusGrant(cpuset.New(5))
			refused.Name, refused.UID = name, types.UID("uid-"+name)
			statuses.set(withShare(name, refused.UID), refused)
		}
		time.Sleep(3 * time.Minute) // they are tried about once a minute by now
		api.ClearActions()
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		synctest.Wait()
		waitReason(t, api, reasonKernelPartition)
		if writes := verbs(api)["update"]; writes != 1 {
			t.Errorf("%d writes at once, want that of the other claim", writes)
		}
		api.ClearActions()
		time.Sleep(3 * time.Minute)
		if writes := verbs(api)["update"]; writes < 3 || writes > 12 {
			t.Errorf("%d writes of the refused claims in 3 minutes, want 3 to 12", writes)
		}
	})
}

// Prepare of one claim changes another one's scope while its status is written. This one is
// for the race detector.
func TestScopeChangesWhileTheStatusIsWritten(t *testing.T) {
	api, statuses := openStored(t)
	shared := statusGrant(cpuset.New(4))
	shared.Shares[0].Zone().Scope = ledger.ScopeShared
	var preparing sync.WaitGroup
	refuse(api, "update", "resourceclaims", func(string) error {
		preparing.Go(func() { statuses.share(ledger.List{ledger.NewListed(shared)}) })
		time.Sleep(10 * time.Millisecond) // orders nothing, unlike a channel
		return apierrors.NewInternalError(io.ErrUnexpectedEOF)
	})
	statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
	if _, err := statuses.write(t.Context(), "uid-c"); err == nil || !strings.Contains(err.Error(), "default/c") {
		t.Errorf("error %v, want one of claim default/c", err)
	}
	preparing.Wait()
}

// verbs counts the requests by verb.
func verbs(api *fake.Clientset) map[string]int {
	counts := make(map[string]int)
	for _, action := range api.Actions() {
		counts[action.GetVerb()]++
	}
	return counts
}

// The claim that the daemon knows is of before another driver wrote its own status.
func TestAClaimThatAnotherClientHasChangedIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := withShare("c", "uid-c")
		changed.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: "other", Pool: node, Device: "gpu"}}
		api := fake.NewClientset(changed)
		refused := false
		refuse(api, "update", "resourceclaims", func(name string) error {
			if refused {
				return nil
			}
			refused = true
			return apierrors.NewConflict(schema.GroupResource{Resource: "resourceclaims"}, name, errors.New("it has been modified"))
		})
		statuses := openStatuses(t, api)
		go statuses.run(t.Context())
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		time.Sleep(time.Second)
		if got, want := verbs(api), map[string]int{"get": 1, "update": 2}; !maps.Equal(got, want) {
			t.Errorf("requests %v, want %v", got, want)
		}
		after, err := api.ResourceV1().ResourceClaims("default").Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil || len(after.Status.Devices) != 2 || after.Status.Devices[0].Driver != "other" || after.Status.Devices[1].Driver != driver.Name {
			t.Errorf("the claim has %+v, %v", after.Status.Devices, err)
		}
	})
}

// After a restart the daemon may know the grant and not the claim.
func TestClaimThatIsNotKnownIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, statuses := openStored(t)
		statuses.set(nil, statusGrant(cpuset.New(4)))
		go statuses.run(t.Context())
		waitReason(t, api, reasonKernelPartition)
	})
}

// What a claim says from before a restart is compared with what is so now, and
// an answer of the kubelet's that came first is not undone.
func TestClaimsFromBeforeARestart(t *testing.T) {
	other := withShare("c", "uid-renewed")
	fresh := openStatuses(t, nil)
	fresh.observe(inState(cgroupState{downgraded: true}), sharedPoolAway)
	fresh.recover(map[types.UID]*resourceapi.ResourceClaim{"uid-c": withShare("c", "uid-c"), "uid-d": other}, []ledger.Grant{
		statusGrant(cpuset.New(4)), {Namespace: "default", Name: "d", UID: "uid-d"},
	})
	if len(fresh.claims) != 1 || fresh.queue.Len() != 1 {
		t.Fatalf("%d claims, %d to write, want the one that is on record", len(fresh.claims), fresh.queue.Len())
	}
	devices := fresh.devices(fresh.claims["uid-c"])
	if condition := findCondition(devices[0], deviceclasses.ConditionExclusive); condition.Reason != reasonShared {
		t.Errorf("condition %+v, want what was seen already", condition)
	}
	prepared := openStatuses(t, nil)
	prepared.set(withShare("c", "uid-c"), statusGrant(cpuset.New(5)))
	prepared.recover(map[types.UID]*resourceapi.ResourceClaim{}, []ledger.Grant{statusGrant(cpuset.New(4))})
	if status := prepared.claims["uid-c"]; status.seen == nil || status.grant.Shares[0].CPUs() != cpuset.New(5) {
		t.Errorf("status %+v, want that of the kubelet's call", status)
	}
}

func TestClaimStatusIsRetriedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(withShare("c", "uid-c"))
		failures := make(chan struct{}, 10)
		refuse(api, "update", "resourceclaims", func(string) error {
			if len(failures) == 2 {
				return nil
			}
			failures <- struct{}{}
			return context.DeadlineExceeded
		})
		statuses := openStatuses(t, api)
		go statuses.run(t.Context())
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		waitStatus(t, api)
		if len(failures) != 2 {
			t.Errorf("%d failures before the status was there, want 2", len(failures))
		}
		forgotten := openStatuses(t, api)
		forgotten.set(withShare("c", "uid-c"), statusGrant(cpuset.New(5)))
		forgotten.forget("uid-c")
		before := len(api.Actions())
		if _, err := forgotten.write(t.Context(), "uid-c"); err != nil || len(api.Actions()) != before {
			t.Errorf("the status of a claim that was unprepared is written, %v", err)
		}
	})
}

// The API server would refuse it, each time.
func TestNoStatusOfAClaimThatIsNotAllocatedHere(t *testing.T) {
	ended := statusGrant(cpuset.New(4))
	ended.Unprepared = true
	elsewhere, anew := withShare("c", "uid-c"), withShare("c", "uid-c")
	elsewhere.Status.Allocation.Devices.Results[0].Pool = "node-2"
	anew.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("share-2"))
	for name, row := range map[string]struct {
		claim *resourceapi.ResourceClaim
		known bool
		grant ledger.Grant
		want  bool // it is written
	}{
		"allocated":           {withShare("c", "uid-c"), true, statusGrant(cpuset.New(4)), true},
		"not allocated":       {claim("c", "uid-c"), true, statusGrant(cpuset.New(4)), false},
		"not known to be":     {claim("c", "uid-c"), false, statusGrant(cpuset.New(4)), false},
		"on another node":     {elsewhere, true, statusGrant(cpuset.New(4)), false},
		"allocated again":     {anew, true, statusGrant(cpuset.New(4)), false},
		"unprepared":          {withShare("c", "uid-c"), true, ended, false},
		"unprepared, unknown": {withShare("c", "uid-c"), false, ended, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewClientset(row.claim)
				statuses := openStatuses(t, api)
				answers := map[types.UID]*resourceapi.ResourceClaim{}
				if row.known {
					answers["uid-c"] = row.claim
				}
				statuses.recover(answers, []ledger.Grant{row.grant})
				go statuses.run(t.Context())
				time.Sleep(time.Minute)
				statuses.observe(inState(invalid), sharedPoolAway) // one that changes is not written either
				time.Sleep(time.Minute)
				if writes := verbs(api)["update"]; (writes > 0) != row.want {
					t.Errorf("%d writes", writes)
				}
			})
		})
	}
}

// Observe releases claims that nobody unprepares.
func TestStatusesOfReleasedClaimsAreForgotten(t *testing.T) {
	_, statuses := openStored(t)
	statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
	other := statusGrant(cpuset.New(5))
	other.UID = "uid-d"
	statuses.set(withShare("d", "uid-d"), other)
	statuses.forgetReleased(func(claimUID types.UID) bool { return claimUID == "uid-c" })
	if _, kept := statuses.claims["uid-c"]; len(statuses.claims) != 1 || !kept {
		t.Errorf("known are %v, want the claim that holds something", statuses.claims)
	}
}

func waitReason(t *testing.T, api *fake.Clientset, reason string) (device resourceapi.AllocatedDeviceStatus) {
	t.Helper()
	var condition *metav1.Condition
	if !until(10*time.Second, func() bool {
		device = waitStatus(t, api).Status.Devices[0]
		condition = findCondition(device, deviceclasses.ConditionExclusive)
		return condition.Reason == reason
	}) {
		t.Fatalf("after 10 s condition Exclusive is %+v, want reason %s", condition, reason)
	}
	return device
}

func waitStatus(t *testing.T, api *fake.Clientset) (claim *resourceapi.ResourceClaim) {
	t.Helper()
	if !until(10*time.Second, func() bool {
		var err error
		if claim, err = api.ResourceV1().ResourceClaims("default").Get(t.Context(), "c", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		return len(claim.Status.Devices) == 1
	}) {
		t.Fatal("after 10 s the claim has no status of one device")
	}
	return claim
}

func findCondition(device resourceapi.AllocatedDeviceStatus, kind string) *metav1.Condition {
	for i := range device.Conditions {
		if device.Conditions[i].Type == kind {
			return &device.Conditions[i]
		}
	}
	return nil
}

// A claim's Prepare may take another one's partition away.
func TestClaimStatusFollowsTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, statuses := openStored(t)
		go statuses.run(t.Context())
		statuses.set(withShare("c", "uid-c"), statusGrant(cpuset.New(4)))
		waitReason(t, api, reasonKernelPartition)
		shared := statusGrant(cpuset.New(4))
		shared.Shares[0].Zone().Scope = ledger.ScopeShared
		statuses.share(ledger.List{{Grant: ledger.Grant{UID: "of another daemon"}}, ledger.NewListed(shared)})
		waitReason(t, api, reasonShared)
	})
}

// What a claim has of a function, or which interrupts are on its CPUs, changes while it runs.
func TestClaimStatusFollowsTheRecord(t *testing.T) {
	c, claim := newCluster(), allocated("c", "uid-1")
	if _, err := c.ResourceV1().ResourceClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := startServed(t, c, t.TempDir(), t.TempDir())
	grant, _, err := s.driver.Prepare(claim, nil)
	if err != nil {
		t.Fatal(err)
	}
	zone := *grant.Shares[0].Zone()
	zone.Why = "another record"
	stale := grant
	stale.Shares = slices.Clone(grant.Shares)
	stale.Shares[0].Kind = &zone
	s.statuses.set(claim, stale)
	expect := func(want string, updates int) {
		t.Helper()
		var data string
		if !until(10*time.Second, func() bool {
			current, err := c.ResourceV1().ResourceClaims("default").Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(current.Status.Devices) > 0 {
				data = string(current.Status.Devices[0].Data.Raw)
			}
			return strings.Contains(data, want)
		}) {
			t.Errorf("data %s, want %s", data, want)
		}
		if got := slices.DeleteFunc(c.Actions(), func(a clienttesting.Action) bool { return !a.Matches("update", "resourceclaims") }); len(got) != updates {
			t.Errorf("%d updates of claims, want %d", len(got), updates)
		}
	}
	expect("another record", 1)
	for range 3 {
		s.Observe(nil)
	}
	expect(grant.Shares[0].Zone().Why, 2)
	s.Observe(nil)
	time.Sleep(100 * time.Millisecond)
	expect(grant.Shares[0].Zone().Why, 2)
}

// inState is what became of the only cgroup of claim uid-c, with CPU 4.
func inState(state cgroupState) partitionStates {
	state.given = pin.Pinning{CPUs: cpuset.New(4)}
	return partitionStates{"uid-c": {state}}
}

// invalid is the state of a cgroup whose partition the kernel does not honour.
var invalid = cgroupState{fault: deviceclasses.FaultPartitionInvalid, why: "root invalid"}

// A claim whose requests different containers use has a condition for each.
func TestConditionsAreOfSingleShares(t *testing.T) {
	_, statuses := openStored(t)
	grant := statusGrant(cpuset.New(4))
	second := grant.Shares[0]
	second.Request, second.Device, second.Kind = "second", "numa-1", &ledger.ZoneShare{NUMANodes: []int{1}, CPUs: cpuset.New(6), Partition: "root"}
	grant.Shares = append(grant.Shares, second)
	statuses.observe(inState(invalid), sharedPoolAway)
	statuses.set(withShare("c", "uid-c"), grant)
	var reasons []string
	for _, device := range statuses.devices(statuses.claims["uid-c"]) {
		reasons = append(reasons, findCondition(device, deviceclasses.ConditionExclusive).Reason)
	}
	if want := []string{"PartitionInvalid", reasonKernelPartition}; !slices.Equal(reasons, want) {
		t.Errorf("reasons %q, want %q", reasons, want)
	}
}
