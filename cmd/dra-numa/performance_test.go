package main

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

func TestServicesThatChangeCPUsAreSeenByTheirCgroups(t *testing.T) {
	cgroups := fstest.MapFS{
		"system.slice/irqbalance.service/cgroup.events": {Data: []byte("populated 1\nfrozen 0\n")},
		"system.slice/tuned.service/cgroup.events":      {Data: []byte("populated 0\nfrozen 0\n")},
		"system.slice/sshd.service/cgroup.events":       {Data: []byte("populated 1\nfrozen 0\n")},
	}
	if got, want := meddlers(cgroups), []string{"irqbalance"}; !slices.Equal(got, want) {
		t.Errorf("services %q, want %q", got, want)
	}
}

func TestCPUsAreChangedOnlyWhereItIsAllowed(t *testing.T) {
	for allow, want := range map[string]bool{"": false, deviceclasses.AllowNone: false, deviceclasses.AllowClass: true, deviceclasses.AllowClaim: true} {
		tuning := tuningOf(options{performance: deviceclasses.NodePerformance{Allow: allow}, machineRoot: t.TempDir(), performanceRoot: t.TempDir()})
		if got := tuning != nil; got != want || got && tuning.ClaimsTune != (allow == deviceclasses.AllowClaim) {
			t.Errorf("allow %q: %+v, want %t", allow, tuning, want)
		}
	}
}

// A default needs no permission for claims.
func TestADefaultIsWrittenWhereClaimsMayAskForNothing(t *testing.T) {
	performance := &deviceclasses.DefaultPerformance{PerformanceSettings: deviceclasses.PerformanceSettings{Governor: "powersave"}, ReservedCPUs: true}
	for allow, only := range map[string]bool{"": true, deviceclasses.AllowClass: false} {
		tuning := tuningOf(options{performance: deviceclasses.NodePerformance{Allow: allow, Default: performance}, machineRoot: t.TempDir(), performanceRoot: t.TempDir()})
		if tuning == nil || tuning.OnlyDefault != only || tuning.Default.Governor != "powersave" || !tuning.DefaultReserved {
			t.Errorf("allow %q: %+v", allow, tuning)
		}
	}
}
