// Package lint finds mistakes in claims, claim templates, device classes and pods before
// they cause harm: errors, which make an object useless, and warnings about what will not
// work or will be slow. It only computes. The admission webhook and kubectl numa lint say
// the same, because both use this package.
package lint

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// Linter checks objects. Several goroutines can use it at the same time.
type Linter struct{ known accounting.Known }

// New returns a Linter that looks up in known what objects refer to.
func New(known accounting.Known) *Linter { return &Linter{known} }

// Severity says what admission does with a finding.
type Severity string

// Severities.
const (
	Error   Severity = "error"   // admission refuses the object
	Warning Severity = "warning" // admission accepts the object, and warns
)

// Names of the rules. They do not change: people look them up and ignore rules by name.
const (
	InvalidParameters     = "invalid-parameters"
	LockedField           = "locked-field"
	RequiredL3Waits       = "required-l3-waits"
	UnknownCapacityKey    = "unknown-capacity-key"
	ZoneWithoutAmounts    = "zone-without-amounts"
	AmountWithoutUnit     = "amount-without-unit"
	CPUsWithoutMemory     = "cpus-without-memory"
	HugepagesOnly         = "hugepages-without-memory"
	BindWithoutMemory     = "bind-without-memory"
	CountOnShared         = "count-on-shared"
	OrderRarestFirst      = "order-rarest-first"
	ExtendedZones         = "extended-resource-of-zones"
	UnknownPool           = "unknown-pool"
	ImpossibleCacheAmount = "impossible-cache-amount"
	CacheWithoutCPUs      = "cache-without-cpus"
	UnclearCacheCPUs      = "unclear-cache-cpus"
	CacheAskedTwice       = "cache-asked-twice"
	CacheNotAligned       = "cache-not-aligned"
	CacheOfSeveralZones   = "cache-of-several-zones"
	MissingGuard          = "missing-guard"
	EndlessQuantity       = "endless-quantity"
	TooManyTexts          = "too-many-texts"
	NotChecked            = "not-checked"
	CPULimitOnClaimPod    = "cpu-limit-on-claim-pod"
	InitClaimsAddUp       = "init-claims-add-up"
	RequestsDoNotMatch    = "requests-do-not-match-claim"
	HugepagesNoClaim      = "hugepages-without-claim"
	RequestNotInClaim     = "request-not-in-claim"
	UnusedClaim           = "unused-claim"
	NodeNameWithClaims    = "node-name-with-claims"
	UnresolvedClaim       = "unresolved-claim"
	schedulerCachedTexts  = 10
)

// Rule is a mistake that lint can find.
type Rule struct {
	Name     string
	Severity Severity
	// Doc says why it matters, and what to do.
	Doc string
}

// Rules are all rules: first those for claims, templates and classes, then those for
// pods.
func Rules() []Rule {
	return []Rule{
		{InvalidParameters, Error, "The opaque parameters for driver dra.numa must have a known kind, with known fields and values. Otherwise the driver refuses to prepare the claim, and its pod does not start."},
		{LockedField, Error, "A class can lock fields of its parameters (locked). Claims that name the class must not give such a field another value than the class. Otherwise the driver refuses to prepare the claim, and its pod does not start. Remove the field from the claim, or name another class."},
		{RequiredL3Waits, Warning, "The scheduler does not see level-3 caches. If no single cache of the zone has enough free CPUs, the driver refuses to prepare the claim, and the pod waits on that node until another claim is gone. With l3: prefer the pod starts, and the claim's status says how many caches its CPUs are in."},
		{UnknownCapacityKey, Warning, "A request must spell a capacity as devices publish it, without the driver's name: cpu, memory, hugepages2Mi; for a cache ways, classes, bandwidthPercent, bandwidthMBps, members. With another key, the scheduler finds no device, and the pod stays Pending without an explanation."},
		{ZoneWithoutAmounts, Warning, "A request for a zone gets the amounts that it names, and 0 of everything else. Without an amount above 0, the claim has a share of a zone with no CPUs, no memory and no hugepages: nothing is pinned, and nothing is kept from other claims."},
		{AmountWithoutUnit, Warning, "Amounts of memory and hugepages are in bytes. Zones give memory in steps of 1Mi, and hugepages in pages, so an amount below one step is most likely one without its unit: hugepages1Gi: 4 is 4 bytes, and becomes one page. Write 4Gi for 4 pages of 1Gi."},
		{CPUsWithoutMemory, Warning, "The driver binds a container to the memory of the zone only if the claim requests memory of it, because only then the scheduler counts that memory. Without memory in the request, the kernel takes memory near the CPUs while there is some, and then from other NUMA nodes. Request the memory that must be near."},
		{HugepagesOnly, Warning, "A container with hugepages of a zone is bound to the NUMA nodes of that zone, with all its memory. If the request names no memory, the scheduler does not count the ordinary memory of the container, and the zone can run out of it. Request memory as well."},
		{BindWithoutMemory, Error, "memoryPolicy: bind binds a container to the memory of the zone. If no request of the claim has memory or hugepages, the scheduler does not count that memory, and the driver refuses to prepare the claim. Request memory, or write memoryPolicy: preferred."},
		{CountOnShared, Warning, "A zone is one device that many claims share: a NUMA node or, by the node's zoneBy, a level-3 cache, a socket or the machine. A count of 2 asks for shares of two different zones of one node. A node with zoneBy: machine has no two zones with CPUs. For a larger share, ask for a larger capacity. For two shares of any zones, write two requests. In firstAvailable, a count is fine after an alternative of one zone. A request for level-3 caches only may have a count, because no zone is larger than a cache."},
		{OrderRarestFirst, Warning, "The scheduler tries the requests of a claim in the order in which they are written, and goes back over all earlier requests. If a constraint binds them, write requests for zones first, then requests for rare devices, and requests for many devices last. In another order, scheduling takes seconds instead of milliseconds."},
		{ExtendedZones, Warning, "An extended resource counts devices and has no amounts. A pod that requests 1 gets a share of a zone with 0 CPUs and 0 memory, and nothing aligns the share with other resources. Extended resources are for whole devices; use claims for zones."},
		{UnknownPool, Error, "The pools of a cache that claims can have are guaranteed, besteffort and shared. A selector for another pool selects no device, and the pod stays Pending. The classes gold.dra.numa, silver.dra.numa and bronze.dra.numa select one pool each."},
		{ImpossibleCacheAmount, Error, "No cache can give the amounts of the request, or the driver refuses them: a cache has up to 64 ways, a bandwidth in percent is 1 to 100, classes and members are always 1, a node counts bandwidth in one unit, and maxWays is at least the ways that the request asks for. The pool shared has members, and no ways for one claim. Only the pool besteffort has maxWays."},
		{CacheWithoutCPUs, Error, "The kernel gives ways and bandwidth to CPUs. So a claim for a cache must also have a request for a zone with cpu. Otherwise the driver refuses to prepare the claim. An extended resource has one request only, so it cannot be for caches."},
		{UnclearCacheCPUs, Error, "A cache is for the CPUs of one request for a zone. If the claim has several such requests, the CacheConfig of the request for the cache must name one (cpus). Otherwise the driver refuses to prepare the claim."},
		{CacheAskedTwice, Error, "CPUs have ways of one pool of one cache. So each request for a zone can have one request for a cache, with a count of 1. Otherwise the driver refuses to prepare the claim. For more ways, ask for more in one request."},
		{CacheNotAligned, Warning, "A constraint must put the CPUs and the ways into one cache: matchAttribute: dra.numa/l3 for both requests. Without it, the scheduler may choose ways of another cache than that of the CPUs, and the driver refuses to prepare the claim."},
		{CacheOfSeveralZones, Warning, "CPUs have ways of one cache. A request with a count above 1, or with allocationMode All, gets CPUs of several zones, and the driver refuses to prepare the claim if they are not all CPUs of that cache. Write a request for each zone, and one for its cache."},
		{MissingGuard, Warning, "A selector is evaluated on the devices of all drivers. If it reads an attribute or capacity that a device lacks, the scheduler gives up on the pod with an error. One such device stops the pod in the whole cluster. Begin the selector with device.driver == \"NAME\" &&, where NAME is the driver whose devices you want. Read what some devices of that driver lack with .?name.orValue(...)."},
		{EndlessQuantity, Error, "No device has a quantity of so many digits, and the scheduler would compute with it for hours, before it does anything else. Write an amount that a device can have."},
		{TooManyTexts, Warning, "The scheduler keeps 10 compiled selectors. If a claim and its classes have more different selectors, the scheduler compiles them again for every node."},
		{NotChecked, Warning, "The request asks for cpu, memory or hugepages, but its selectors and those of its class do not say whether it is for a zone. So the other rules do not check it, and with mirrorRequests: enforce its pods are refused. Begin a selector of the request or of the class with device.driver == \"NAME\" &&, where NAME is the driver whose devices you want."},
		{CPULimitOnClaimPod, Warning, "A CPU limit is a quota for each 100 ms. One that is less than the claim's CPUs, or that is of the pod itself, throttles the container on CPUs that no other container may use. Remove it: the claim is the limit. The rule does not know where a larger one throttles, too: with cpuQuota: keep, and for mixed claims. Pods that the webhook has translated keep theirs, without a warning."},
		{InitClaimsAddUp, Warning, "A pod holds all its claims from its start to its end. So the claim of an init container adds to the claims of the other containers, unlike its requests. Let the containers share one claim."},
		{RequestsDoNotMatch, Warning, "Neither the scheduler nor the kubelet counts what a claim holds. So the pod's requests must repeat it, and its limits must repeat the hugepages. Otherwise the node is promised twice."},
		{HugepagesNoClaim, Warning, "On nodes with zones, the scheduler gives all hugepages to claims. It also counts those that pods request without a claim, but in another account. Such a pod may take the pages of a claim whose program has not used them yet, or be on a node where claims have all of them. Request all hugepages of a pod with claims."},
		{RequestNotInClaim, Warning, "A container that names a request gets only the devices of that request. If the claim has no request of this name, the container starts without devices: its programs are not pinned, and nobody uses what the claim holds. The API server does not notice, because the claim is another object."},
		{UnusedClaim, Warning, "A pod holds all devices of its claims, but only containers that name a claim in resources.claims get them. If no container does, nobody uses the CPUs and the memory, and no other pod gets them."},
		{NodeNameWithClaims, Warning, "A pod with spec.nodeName does not pass the scheduler, and nothing else allocates claims. The kubelet does not start the pod. Use a node selector or node affinity."},
		{UnresolvedClaim, Warning, "It is not known what the pod's claim will hold, so the pod's requests cannot be checked. The claim does not exist yet, another pod counts it, the scheduler chooses among different amounts, or the selectors may select zones and other devices."},
	}
}

// Finding is one mistake in an object.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Field is the path of the field, such as spec.devices.requests[0].
	Field string `json:"field"`
	// Message is a sentence that follows the field.
	Message string `json:"message"`
}

// String is the finding as admission prints it: field and message, and for a warning the
// rule.
func (f Finding) String() string {
	if f.Severity == Error {
		return fmt.Sprintf("%s: %s", f.Field, f.Message)
	}
	return fmt.Sprintf("%s: %s (%s)", f.Field, f.Message, f.Rule)
}

func fail(rule, field, format string, args ...any) Finding {
	return Finding{rule, Error, field, fmt.Sprintf(format, args...)}
}

func warn(rule, field, format string, args ...any) Finding {
	return Finding{rule, Warning, field, fmt.Sprintf(format, args...)}
}
