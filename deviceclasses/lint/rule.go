// Package lint says what is wrong with claims, claim templates, device classes
// and pods before they hurt: errors, which nothing could make sense of, and
// warnings of what will not work or be slow. It computes only. The admission
// webhook and kubectl numa lint say the same because both are this package.
package lint

import "fmt"

// Severity says what becomes of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // admission refuses the object
	Warning Severity = "warning" // admission lets it pass, and says so
)

// Names of the rules. They are stable: people look them up and suppress them.
const (
	InvalidParameters    = "invalid-parameters"
	RequiredL3Waits      = "required-l3-waits"
	UnknownCapacityKey   = "unknown-capacity-key"
	CountOnShared        = "count-on-shared"
	OrderRarestFirst     = "order-rarest-first"
	ExtendedZones        = "extended-resource-of-zones"
	MissingGuard         = "missing-guard"
	TooManyTexts         = "too-many-texts"
	CPULimitOnClaimPod   = "cpu-limit-on-claim-pod"
	InitClaimsAddUp      = "init-claims-add-up"
	RequestsDoNotMatch   = "requests-do-not-match-claim"
	UnresolvedClaim      = "unresolved-claim"
	schedulerCachedTexts = 10
)

// Rule is what can be found.
type Rule struct {
	Name     string
	Severity Severity
	// Doc is a sentence or two: why it matters, and what to do.
	Doc string
}

// Rules are all rules, objects' before pods'.
func Rules() []Rule {
	return []Rule{
		{InvalidParameters, Error, "The opaque parameters for driver dra.numa have to be a known kind with known fields and values. The driver would refuse to prepare the claim, and its pod would not start."},
		{RequiredL3Waits, Warning, "The scheduler does not see level-3 caches. Where no single one of the zone has the CPUs free, the driver refuses to prepare the claim and the pod waits on that node, until another claim is gone. With l3: prefer it starts, and the claim's status says in how many it is."},
		{UnknownCapacityKey, Warning, "A capacity has to be spelled as devices publish it, without the driver's name: cpu, memory, hugepages2Mi. The scheduler finds no device with another key, and the pod stays Pending without a word."},
		{CountOnShared, Warning, "A zone is one device that many claims share. A count of 2 is two different NUMA nodes; a larger share is a larger capacity, and two shares of any zones are two requests. In firstAvailable it is fine after an alternative of one zone."},
		{OrderRarestFirst, Warning, "The scheduler tries requests as written and goes back over all that came before. With constraints between them, write zones first, then what is rare, and large sets last: the other way round takes seconds instead of milliseconds."},
		{ExtendedZones, Warning, "An extended resource counts devices and has no amounts: who asks for 1 gets a share of a zone with 0 CPUs and 0 memory, and nothing aligns it with other resources. Extended resources are for whole devices; zones are asked for by claims."},
		{MissingGuard, Warning, "A selector is evaluated on the devices of all drivers. One that reads an attribute which a device lacks stops the scheduling of the pod with an error: begin with device.driver == \"dra.numa\" &&, and read what not all devices have with .?name.orValue(...)."},
		{TooManyTexts, Warning, "The scheduler keeps 10 compiled selectors. A claim with more different texts, those of its classes included, has them compiled again for every node."},
		{CPULimitOnClaimPod, Warning, "A CPU limit is a quota for each 100 ms: it throttles the container on CPUs that nobody else may use. Leave it out; the claim is the limit."},
		{InitClaimsAddUp, Warning, "A pod holds all its claims from start to end. Unlike requests, the claim of an init container adds to those of the others. Let them share one claim."},
		{RequestsDoNotMatch, Warning, "Neither scheduler nor kubelet counts what a claim holds: the pod's requests have to say it again, and the limits that of hugepages. Otherwise the node is given out twice."},
		{UnresolvedClaim, Warning, "What the pod's claim is going to hold is not known, so that nobody can say whether its requests match: the claim does not exist yet, another pod counts it, or the scheduler chooses among different amounts."},
	}
}

// Finding is one thing that is wrong.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Field is the path from the object, such as spec.devices.requests[0].
	Field string `json:"field"`
	// Message is a sentence that follows the field.
	Message string `json:"message"`
}

// String is the finding as admission says it: field, message and, of a warning,
// the rule.
func (f Finding) String() string {
	if f.Severity == Error {
		return fmt.Sprintf("%s: %s", f.Field, f.Message)
	}
	return fmt.Sprintf("%s: %s (%s)", f.Field, f.Message, f.Rule)
}

func warn(rule, field, format string, args ...any) Finding {
	return Finding{rule, Warning, field, fmt.Sprintf(format, args...)}
}
