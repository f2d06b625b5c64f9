package kubeletplugin

import (
	"slices"
	"testing"
	"testing/synctest"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestGrantsWhoseClaimsAreGoneAreReleased(t *testing.T) {
	d := recoveredDriver(t)
	kept := allocated("kept", "uid-kept")
	for _, claim := range []string{"kept", "gone"} {
		if _, _, err := d.Prepare(allocated(claim, types.UID("uid-"+claim)), nil); err != nil {
			t.Fatal(err)
		}
	}
	l := newLeftovers(fake.NewClientset(kept), d)
	look := func(recorded *partitionStates, want ...string) {
		t.Helper()
		l.recorded.Store(recorded)
		if err := l.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Observe(nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, grant := range d.Grants() {
			got = append(got, grant.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v hold something, want %v", got, want)
		}
	}
	look(nil, "gone", "kept")                                // it is not known yet which containers run
	look(&partitionStates{"uid-gone": {{}}}, "gone", "kept") // its container runs
	look(&partitionStates{"uid-kept": {{}}}, "kept")         // it has ended
	look(&partitionStates{}, "kept")                         // the API server has the claim
}

// The scheduler counts as free all that a claim had which is gone, and not only its CPUs.
func TestAClaimThatIsRefusedHasLeftoversLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := testConfig()
		config.Hugepages = func(cpuset.Set, map[string][]string) (driver.Hugepages, error) {
			return driver.Hugepages{Free: map[int]map[string]uint64{0: {"2Mi": 8 << 20}}}, nil
		}
		s := startServing(t)
		s.driver = recoveredWith(t, config)
		s.leftovers = newLeftovers(s.client, s.driver)
		s.leftovers.recorded.Store(&partitionStates{})
		prepare := func(name string, succeeds, wantsLook bool) {
			t.Helper()
			claim := allocated(name, types.UID("uid-"+name))
			claim.Status.Allocation.Devices.Results[0].ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"hugepages2Mi": resource.MustParse("8Mi")}
			if _, _, err := s.prepare(t.Context(), claim); (err == nil) != succeeds || (len(s.leftovers.wanted) > 0) != wantsLook {
				t.Fatalf("claim %s: error %v, a look is wanted: %t", name, err, len(s.leftovers.wanted) > 0)
			}
		}
		prepare("gone", true, false)
		prepare("new", false, true)
		<-s.leftovers.wanted
		if err := s.leftovers.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.driver.Observe(nil); err != nil {
			t.Fatal(err)
		}
		prepare("new", true, false)
	})
}
