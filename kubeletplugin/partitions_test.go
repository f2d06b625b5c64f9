package kubeletplugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
)

// Each look is a letter, one second after the one before: "." no container,
// "o" as wanted, "x" a fault, "d" downgraded.
func TestFaultsThatLastAreTold(t *testing.T) {
	for looks, want := range map[string]string{
		".o.":     "",
		"xo":      "",                            // the hook was not yet done
		"xxxo":    "",                            // on a slow node
		"oxo":     "2 restored after 1s",         // repaired as soon as seen
		"oxxxxo":  "2 lost, 5 restored after 4s", // told once
		"oxxo..o": "2 lost, 3 restored after 2s", // another container
		"oxx..":   "2 lost",                      // it ended so
		"oxx.xo":  "2 lost",                      // and the next one begins
		"oddd":    "",                            // not a fault
		"oxdx":    "2 restored after 1s",         // downgraded is as wanted
	} {
		var watch faultWatch
		var got []string
		for i, look := range looks {
			var live []pin.Live
			if look != '.' {
				live = []pin.Live{{Cgroup: "pod/c", Claims: []pin.ClaimRef{{UID: "uid"}}, Downgraded: look == 'd'}}
			}
			if look == 'x' {
				live[0].Fault = "root invalid"
			}
			states, turns := watch.look(time.Unix(int64(1000+i), 0), live)
			for _, turn := range turns {
				what := fmt.Sprintf("%d restored after %s", i, turn.lasted)
				if turn.lost {
					what = fmt.Sprintf("%d lost", i)
				}
				got = append(got, what)
				if turn.why != "root invalid" || len(turn.claims) != 1 {
					t.Errorf("%s: turn %+v", looks, turn)
				}
			}
			faulty := look == 'x' && slices.ContainsFunc(got, func(turn string) bool { return strings.HasSuffix(turn, " lost") }) && looks[i-1] == 'x'
			if state := states["uid"]; (state.fault != "") != faulty || state.downgraded != (look == 'd') {
				t.Errorf("%s: after look %d the claim is %+v", looks, i, state)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", looks, got, want)
		}
	}
}

// A hook that is at work for so long never ends.
func TestFaultThatWasAlwaysThere(t *testing.T) {
	var watch faultWatch
	live := []pin.Live{{Cgroup: "pod/c", Claims: []pin.ClaimRef{{UID: "uid"}}, Fault: "root invalid"}}
	for _, test := range []struct {
		at   int64
		want string
	}{{0, ""}, {14, ""}, {15, "root invalid"}, {16, "root invalid"}} {
		states, turns := watch.look(time.Unix(1000+test.at, 0), live)
		if states["uid"].fault != test.want || (len(turns) > 0) != (test.at == 15) {
			t.Errorf("after %d s: %+v, turns %+v, want fault %q", test.at, states, turns, test.want)
		}
	}
}

// A claim with two containers is as good as the worse of them.
func TestClaimOfTwoCgroups(t *testing.T) {
	var watch faultWatch
	live := []pin.Live{
		{Cgroup: "a", Claims: []pin.ClaimRef{{UID: "one"}, {UID: "two"}}, Fault: "root invalid"},
		{Cgroup: "b", Claims: []pin.ClaimRef{{UID: "two"}}, Downgraded: true},
	}
	watch.look(time.Unix(1000, 0), live)
	states, turns := watch.look(time.Unix(1015, 0), live)
	if len(turns) != 1 || len(turns[0].claims) != 2 {
		t.Errorf("turns %+v", turns)
	}
	if one, two := states["one"], states["two"]; one != (partitionState{"root invalid", false}) || two != (partitionState{"root invalid", true}) {
		t.Errorf("states %+v", states)
	}
}
