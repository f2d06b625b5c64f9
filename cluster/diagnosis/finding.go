package diagnosis

import (
	"cmp"
	"slices"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	// Node is where; empty: in the cluster.
	Node string `json:"node"`
	// Area is the part of a cluster that the check is about.
	Area string `json:"area"`
	// Check is the name of the check; it does not change between versions.
	Check string `json:"check"`
	// Component is what has the setting, and Setting its name there.
	Component string `json:"component"`
	Setting   string `json:"setting"`
	// Expected and Detected are for people.
	Expected string `json:"expected"`
	Detected string `json:"detected"`
}

// Check is something that is looked at.
type Check struct {
	Name string // stable: it is in findings
	Area string
	find func(*Facts) []Finding
}

// Checks are those of Validate, in their order.
func Checks() []Check {
	return []Check{
		{"not-checked", "diagnosis", notChecked},
		{notPermitted, "diagnosis", notAllowed},
		{"kubernetes-version", "versions", kubernetesVersion},
		{"feature-gate", "versions", featureGate},
		{"runtime-version", "versions", runtimeVersion},
		{"driver-installed", "driver", driverInstalled},
		{"driver-version", "driver", driverVersion},
		{"driver-ready", "driver", driverReady},
		{"driver-rights", "driver", driverRights},
		{"webhook-ready", "driver", webhookReady},
		{"device-class", "classes", deviceClass},
		{"zones-published", "zones", zonesPublished},
		{"zone-exclusivity", "zones", zoneExclusivity},
		{"device-taint", "zones", deviceTaint},
		{"other-cpu-driver", "node", otherCPUDriver},
		{"kubelet-manager", "node", kubeletManager},
		{"reserved-cpus", "node", reservedCPUs},
		{"overcommit", "accounting", overcommit},
		{"uncounted-pod", "accounting", uncountedPod},
	}
}

// Validate looks at everything. Findings are by node, those of the cluster first,
// and then in the order of the checks.
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

// notPermitted is the check of what the user has no right to read.
const notPermitted = "not-permitted"

// Wrong is how many of the findings are about something that is not as it should
// be: what the user may not read is not.
func Wrong(findings []Finding) (count int) {
	for _, finding := range findings {
		if finding.Check != notPermitted {
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
