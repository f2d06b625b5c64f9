package diagnosis

import (
	"cmp"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Finding is one problem.
type Finding struct {
	// Node is the name of the node; empty for the cluster.
	Node string `json:"node"`
	// Area is the part of a cluster that the check is about.
	Area string `json:"area"`
	// Check is the name of the check; it does not change between versions.
	Check string `json:"check"`
	// Component is where the setting is, and Setting is its name there.
	Component string `json:"component"`
	Setting   string `json:"setting"`
	// Expected and Detected are for people.
	Expected string `json:"expected"`
	Detected string `json:"detected"`
}

// Check is one check of Validate.
type Check struct {
	Name string // stable, because findings contain it
	Area string
	find func(*Facts) []Finding
}

// Checks returns the checks of Validate, in their order.
func Checks() []Check {
	return []Check{
		{"not-checked", "diagnosis", notChecked},
		{notPermitted, "diagnosis", notAllowed},
		{"kubernetes-version", "versions", kubernetesVersion},
		{"feature-gate", "versions", featureGate},
		{"control-plane-gate", "versions", controlPlaneGates},
		{"runtime-version", "versions", runtimeVersion},
		{"driver-installed", "driver", driverInstalled},
		{lookAlikes, "driver", lookAlike},
		{"driver-version", "driver", driverVersion},
		{"driver-ready", "driver", driverReady},
		{"pod-security", "driver", podSecurity},
		{"driver-rights", "driver", driverRights},
		{"webhook-ready", "driver", webhookReady},
		{"device-class", "classes", deviceClass},
		{"zones-published", "zones", zonesPublished},
		{deviceclasses.FaultPaused, "zones", publishingPaused},
		{"stale-slices", "zones", staleSlices},
		{"zone-exclusivity", "zones", zoneExclusivity},
		{"zones-differ", "zones", zonesDiffer},
		{"device-taint", "zones", deviceTaint},
		{"other-cpu-driver", "node", otherCPUDriver},
		{cpuSuspects, "node", suspectedCPUDriver},
		{"made-up-machine", "node", madeUpMachine},
		{"resource-policy", "node", resourcePolicy},
		{"kubelet-manager", "node", kubeletManager},
		{"topology-manager", "node", topologyManager},
		{"reserved-cpus", "node", reservedCPUs},
		{"reserved-memory", "node", reservedMemory},
		{"cluster-autoscaler", "node", autoscaler},
		{"nri", "node", nriOff},
		{"caches-published", "node", cachesPublished},
		{"stale-profile", "node", staleProfile},
		{overlaps, "node", profileOverlap},
		{interruptMover, "node", movedInterrupts},
		{powerServices, "node", powerService},
		{"unprepared-claim", "claims", unpreparedClaim},
		{"not-pinned", "claims", notPinned},
		{"memory-policy", "claims", policyIgnored},
		{"cgroup-writer", "claims", cgroupWriter},
		{"performance-annotation", "claims", performanceAnnotation},
		{"numa-scheduler", "claims", numaScheduler},
		{"overcommit", "accounting", overcommit},
		{"uncounted-pod", "accounting", uncountedPod},
		{"unclaimed-hugepages", "accounting", unclaimedHugepages},
	}
}

// Validate runs all checks. Findings are sorted by node and then by check. Those of the
// cluster come first.
func Validate(facts *Facts) (findings []Finding) {
	findings = run(Checks(), facts)
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Node, b.Node) })
	return findings
}

func run(checks []Check, facts *Facts) []Finding {
	findings := []Finding{}
	for _, check := range checks {
		for _, finding := range check.find(facts) {
			finding.Check, finding.Area = check.Name, check.Area
			findings = append(findings, finding)
		}
	}
	return findings
}

// Names of the checks whose findings are no problems.
const (
	notPermitted = "not-permitted" // what the user is not allowed to read
	lookAlikes   = "look-alike"    // what any user can create

	interruptMover = "irqbalance"    // which may be configured well
	powerServices  = "power-service" // the same

	cpuSuspects = "suspected-cpu-driver" // which may pin nothing
	overlaps    = "profile-overlap"      // which may be meant so
)

// CountProblems counts the findings that are problems. It is not a problem if the user
// is not allowed to read something, if there are pods that are ignored, if a service or
// another driver may leave the CPUs of claims alone, or if profiles overlap.
func CountProblems(findings []Finding) (count int) {
	for _, finding := range findings {
		if !slices.Contains([]string{notPermitted, lookAlikes, interruptMover, powerServices, cpuSuspects, overlaps}, finding.Check) {
			count++
		}
	}
	return count
}

func notChecked(f *Facts) []Finding { return f.unread(false) }

func notAllowed(f *Facts) []Finding { return f.unread(true) }

func (f *Facts) unread(denied bool) (findings []Finding) {
	for _, unread := range f.Unread {
		if unread.Denied == denied {
			findings = append(findings, Finding{
				Node: unread.Node, Component: unread.Component, Setting: unread.Setting,
				Expected: "readable", Detected: unread.Why,
			})
		}
	}
	return findings
}
