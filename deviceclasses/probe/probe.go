// Package probe says what selectors of claims and classes select. It evaluates them for
// devices that it makes up: devices as this driver can publish them, with the values that
// the selectors compare attributes with, and devices of other drivers. It knows no
// cluster, so it says what can be selected, not what is.
package probe

import (
	"context"
	"math"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/lru"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

const (
	keptTexts   = 256  // compiled selectors: more than the classes of a cluster have
	keptResults = 1024 // results, which are small

	// maxDevices is the number of devices of one sort for which selectors are evaluated,
	// and maxCost limits the cost of all evaluations, in units of CEL's cost. The
	// scheduler allows four times as much for one evaluation.
	maxDevices = 2048
	maxCost    = resourceapi.CELSelectorExpressionMaxCost / 4
)

// Selectors evaluates selectors, and keeps what it has compiled and found out. Several
// goroutines can use it at the same time.
type Selectors struct {
	compiled *cel.Cache
	results  *lru.Cache // of Result, by the texts of the selectors
	budget   *budget
}

// New returns Selectors that have compiled nothing, and evaluate whatever they are asked.
func New() *Selectors {
	compiled := cel.NewCache(keptTexts, cel.Features{EnableConsumableCapacity: true})
	return &Selectors{compiled, lru.New(keptResults), &budget{ctx: context.Background(), left: math.MaxInt}}
}

// Result says what selectors select.
type Result struct {
	// Zones, Caches, Functions and Foreign report whether some zone, pool of a cache, PCI
	// function or device of another driver is selected.
	Zones, Caches, Functions, Foreign bool
	// Incomplete reports that there are too many devices to evaluate, that this costs too
	// much, or that it was no longer allowed (see Within). More may be selected, and more
	// may be missing.
	Incomplete bool
	// Missing is the first attribute or capacity that a selector reads and that a device
	// lacks. At such a device, the scheduler gives up on the pod.
	Missing *Missing
	// UnknownPool is the first text that a selector compares with the pool of a cache,
	// although no pool has this name.
	UnknownPool *UnknownPool
}

// Nothing reports that no device can be selected.
func (r Result) Nothing() bool {
	return !r.Zones && !r.Caches && !r.Functions && !r.Foreign && !r.Incomplete
}

// Missing is an attribute or capacity that a selector reads without need.
type Missing struct {
	// Index is the index of the selector among those of the request, or of the class if
	// only a class is evaluated.
	Index int
	Name  string // without its domain
	// Foreign reports that the device is of another driver.
	Foreign bool
}

// UnknownPool is a text that is not the name of a pool.
type UnknownPool struct {
	Index int // as in Missing
	Name  string
}

// Gets says whether a request gets zones.
type Gets int

// What a request gets.
const (
	NoZone Gets = iota
	OnlyZones
	Unclear // zones can be selected, but other devices as well
)

// Capacities are what a request asks for, by the names that it has for them.
type Capacities = map[resourceapi.QualifiedName]resource.Quantity

// OfZones says whether a request with these selectors, those of its class first, gets
// zones.
func (s *Selectors) OfZones(class, own []resourceapi.DeviceSelector, asked Capacities) Gets {
	switch result := s.with(class, own, asked); {
	case !result.Zones && !result.Incomplete:
		return NoZone
	case result.Incomplete && !result.Zones, result.Foreign, result.Functions, result.Caches:
		return Unclear
	}
	return OnlyZones
}

// OfCaches reports whether a request with these selectors gets pools of caches, and
// nothing else.
func (s *Selectors) OfCaches(class, own []resourceapi.DeviceSelector, asked Capacities) bool {
	result := s.with(class, own, asked)
	return result.Caches && !result.Zones && !result.Functions && !result.Foreign
}

// with is Try without the devices that lack the capacities of the request. PCI functions
// have none. If the selectors select both zones and caches, the capacities decide.
func (s *Selectors) with(class, own []resourceapi.DeviceSelector, asked Capacities) Result {
	result := s.Try(class, own)
	if len(asked) == 0 {
		return result
	}
	result.Functions = false
	if result.Zones && result.Caches {
		result.Zones = !slices.ContainsFunc(deviceclasses.CacheCapacities(), func(name resourceapi.QualifiedName) bool {
			_, asks := asked[name]
			return asks
		})
		result.Caches = !result.Zones
	}
	return result
}

// Try evaluates the selectors of a request as the scheduler does: those of the class
// first, one after the other, until one does not match. A selector that does not compile
// matches nothing; the API server refuses it. Only own selectors are searched for what is
// missing, and for unknown pools.
func (s *Selectors) Try(class, own []resourceapi.DeviceSelector) Result {
	if s.budget.spent() {
		return Result{Incomplete: true} // before the texts are even joined
	}
	key := keyOf(class) + "\x00" + keyOf(own)
	if !s.budget.pay(key, len(class)+len(own)) {
		return Result{Incomplete: true}
	}
	if known, ok := s.results.Get(key); ok {
		return known.(Result)
	}
	result := s.try(class, own)
	if !s.budget.spent() { // else it may have been cut short
		s.results.Add(key, result)
	}
	return result
}

// keyOf joins the texts of selectors, each of which ends with a byte that no text has.
func keyOf(selectors []resourceapi.DeviceSelector) string {
	var b strings.Builder
	for _, selector := range selectors {
		if selector.CEL != nil {
			b.WriteString(selector.CEL.Expression)
		}
		b.WriteByte(1)
	}
	return b.String()
}

func (s *Selectors) try(class, own []resourceapi.DeviceSelector) Result {
	var texts []text
	for i, selector := range append(class[:len(class):len(class)], own...) {
		if selector.CEL == nil {
			return Result{}
		}
		if s.budget.spent() {
			return Result{Incomplete: true}
		}
		compiled := s.compiled.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return Result{}
		}
		texts = append(texts, newText(compiled, i-len(class)))
	}
	search := search{ctx: s.budget.ctx, texts: texts}
	search.result.UnknownPool = unknownPool(texts)
	for _, sort := range sorts(texts) {
		search.of(sort)
	}
	return search.result
}
