package kubeletplugin

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
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
