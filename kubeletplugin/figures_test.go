package kubeletplugin

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestCallsOfTheKubeletAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServing(t)
		claims := []*resourceapi.ResourceClaim{allocated("a", "uid-1"), allocated("b", "uid-2"), claim("not-allocated", "uid-3")}
		results, err := s.PrepareResourceClaims(t.Context(), claims)
		if err != nil || results["uid-3"].Err == nil {
			t.Fatalf("%+v, %v, want an error of one claim", results, err)
		}
		if _, err := s.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: "uid-1"}}); err != nil {
			t.Fatal(err)
		}
		got := s.Figures()
		if got.Prepare.Done.Count != 2 || got.Prepare.Failed.Count != 1 || got.Unprepare.Done.Count != 1 || got.Unprepare.Failed.Count != 0 {
			t.Errorf("prepared %d, failed %d, unprepared %d, failed %d, want 2, 1, 1, 0",
				got.Prepare.Done.Count, got.Prepare.Failed.Count, got.Unprepare.Done.Count, got.Unprepare.Failed.Count)
		}
		if got.Runtime != RuntimeUnused || got.Cgroups != nil {
			t.Errorf("runtime %q and cgroups %v before anything was seen", got.Runtime, got.Cgroups)
		}
	})
}

// Each call for a claim is one line of the log, with the claim, its pods and the duration.
func TestCallsOfTheKubeletAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServing(t)
		var log strings.Builder
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		a := allocated("a", "uid-1")
		a.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "web", UID: "uid-web"}}
		lines := func(call func() error) string {
			t.Helper()
			log.Reset()
			if err := call(); err != nil {
				t.Fatal(err)
			}
			header := regexp.MustCompile(`(?m)^([IE])\S+ \S+ +\d+ \S+\] `) // time, process and source
			return header.ReplaceAllString(log.String(), "$1 ")
		}
		for _, row := range []struct {
			what, want string
			call       func() error
		}{
			{"prepare", `I "Prepared claim" claim="default/a" claimUID="uid-1" pods=["web"] duration="0s"` + "\n", func() error {
				_, err := s.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{a})
				return err
			}},
			{"failure", `E "Preparing a claim failed" err="status.allocation: the claim is not allocated" claim="default/b" claimUID="uid-2" pods=null duration="0s"` + "\n", func() error {
				_, err := s.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{claim("b", "uid-2")})
				return err
			}},
			{"unprepare", `I "Unprepared claim" claim="default/a" claimUID="uid-1" duration="0s"` + "\n", func() error {
				_, err := s.UnprepareResourceClaims(ctx, []kubeletplugin.NamespacedObject{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}, UID: "uid-1"}})
				return err
			}},
		} {
			if got := lines(row.call); got != row.want {
				t.Errorf("%s is logged as\n%s, want\n%s", row.what, got, row.want)
			}
		}
	})
}

func TestFiguresOfCgroups(t *testing.T) {
	var c counters
	exclusive := pin.Pinning{CPUs: cpuset.New(1), Partition: pin.PartitionRoot}
	c.see([]pin.Live{
		{Cgroup: "a", Want: exclusive},
		{Cgroup: "b", Want: exclusive, Fault: "root invalid"},
		{Cgroup: "c", Want: exclusive, Downgraded: true},
		{Cgroup: "d", Want: pin.Pinning{Mems: cpuset.New(0)}},
		{Cgroup: "e", Want: exclusive},
	}, partitionStates{
		"faulty": {{}, invalid}, "unpinned": {{ofAll: true, fault: deviceclasses.FaultNotPinned, why: whyNotPinned}}, "fine": {{}},
	})
	got := (&Plugin{counters: counters{}}).Figures()
	if got.Cgroups != nil {
		t.Errorf("cgroups %v of a plugin that has seen none", got.Cgroups)
	}
	seen := c.seen.Load()
	if diff := cmp.Diff(map[CgroupState]int{CgroupExclusive: 2, CgroupFaulty: 1, CgroupDowngraded: 1, CgroupPinned: 1}, seen.cgroups); diff != "" {
		t.Errorf("cgroups differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[types.UID]bool{"faulty": true, "unpinned": true}, seen.faulty); diff != "" {
		t.Errorf("claims differ (-want +got):\n%s", diff)
	}
}
