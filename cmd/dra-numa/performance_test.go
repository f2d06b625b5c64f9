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
		tuning := tuningOf(options{performance: allow, machineRoot: t.TempDir(), performanceRoot: t.TempDir()})
		if got := tuning != nil; got != want || got && tuning.ClaimsTune != (allow == deviceclasses.AllowClaim) {
			t.Errorf("allow %q: %+v, want %t", allow, tuning, want)
		}
	}
}
