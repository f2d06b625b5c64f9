// Package probe says what selectors of claims and classes select, in two ways. Try
// evaluates them for devices that it makes up: devices as this driver can publish them,
// with the values that the selectors compare attributes with, and devices of other
// drivers. What it finds can be selected; what it does not find may be selected
// nevertheless. Possible evaluates them for devices of which only driver and kind are
// known. What it excludes is never selected, so refusals rest on it. The package knows no
// cluster, so it says what can be selected, not what is.
package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/lru"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
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
	compiled *allocation.Cache
	texts    *lru.Cache // of text, by its expression
	results  *lru.Cache // of Result, by the texts of the selectors
	possible *lru.Cache // of Possible, by the same
	budget   *budget
}

// New returns Selectors that have compiled nothing, and evaluate whatever they are asked.
func New() *Selectors {
	compiled := allocation.NewCache(keptTexts, allocation.DefaultFeatures())
	return &Selectors{compiled, lru.New(keptTexts), lru.New(keptResults), lru.New(keptResults), &budget{ctx: context.Background(), left: math.MaxInt}}
}

// Result says what selectors select.
type Result struct {
	// Zones, Caches, Functions and Foreign report whether some zone, pool of a cache, PCI
	// function or device of another driver is selected.
	Zones, Caches, Functions, Foreign bool
	// Incomplete reports that there are too many devices to evaluate, that this costs too
	// much, that it computes with quantities that are not known, or that it was no longer
	// allowed (see Within). More may be selected, and more may be missing.
	Incomplete bool
	// Missing is the first attribute or capacity that a selector reads and that a device
	// lacks. At such a device, the scheduler gives up on the pod.
	Missing *Missing
	// Endless is the first quantity that keeps the scheduler busy. The result is incomplete then.
	Endless *Endless
	// UnknownPool is the first text that a selector compares with the pool of a cache,
	// although no pool has this name.
	UnknownPool *UnknownPool
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
	// NoZone is a proof: whatever is published, the request gets no zone.
	NoZone Gets = iota
	// OnlyZones means that the request gets zones or nothing, as far as is known.
	OnlyZones
	// Unclear means that the request may get zones and other devices.
	Unclear
)

// Capacities are what a request asks for, by the names that it has for them.
type Capacities = map[resourceapi.QualifiedName]resource.Quantity

// OfZones says whether a request with these selectors, those of its class first, gets
// zones. If the class selects nothing but zones, own selectors cannot change that. It is an
// error if a selector does not compile.
func (s *Selectors) OfZones(class, own []resourceapi.DeviceSelector, asked Capacities) (Gets, error) {
	switch possible, err := s.Possible(class, own, asked); {
	case err != nil:
		return Unclear, err
	case !possible.Zones:
		return NoZone, nil
	case possible.OnlyZones(), s.Try(class, nil).with(asked).onlyZones(), s.Try(class, own).with(asked).onlyZones():
		return OnlyZones, nil
	}
	return Unclear, nil
}

func (r Result) onlyZones() bool {
	return r.Zones && !r.Caches && !r.Functions && !r.Foreign && !r.Incomplete
}

// with leaves out the devices that lack the capacities of the request. PCI functions have
// none. If the selectors select both zones and caches, the capacities decide.
func (r Result) with(asked Capacities) Result {
	if len(asked) == 0 {
		return r
	}
	r.Functions = false
	if r.Zones && r.Caches {
		r.Zones = !asksCaches(asked)
		r.Caches = !r.Zones
	}
	return r
}

func asksCaches(asked Capacities) bool {
	return slices.ContainsFunc(deviceclasses.CacheCapacities(), func(name resourceapi.QualifiedName) bool {
		_, asks := asked[name]
		return asks
	})
}

// Try evaluates the selectors of a request as the scheduler does: those of the class
// first, one after the other, until one does not match. A selector that does not compile
// matches nothing; the API server refuses it. Only own selectors are searched for what is
// missing, and for unknown pools.
func (s *Selectors) Try(class, own []resourceapi.DeviceSelector) Result {
	if s.budget.spent() {
		return Result{Incomplete: true} // before the texts are even joined
	}
	key := keyOf(class, own)
	if !s.budget.pay(key, len(class)+len(own)) {
		return Result{Incomplete: true}
	}
	if known, ok := s.results.Get(key); ok {
		return known.(Result)
	}
	result := s.try(class, own)
	if s.budget.spent() { // it may have been cut short
		return Result{Incomplete: true}
	}
	s.results.Add(key, result)
	return result
}

// keyOf joins the texts of selectors, those of a class first, so that no other selectors
// have the same key: tenants can write any byte.
func keyOf(class, own []resourceapi.DeviceSelector) string {
	var b strings.Builder
	for _, selectors := range [][]resourceapi.DeviceSelector{class, own} {
		for _, selector := range selectors {
			text := ""
			if selector.CEL != nil {
				text = selector.CEL.Expression
			}
			fmt.Fprintf(&b, "%d:%s", len(text), text)
		}
		b.WriteByte(';')
	}
	return b.String()
}

func (s *Selectors) try(class, own []resourceapi.DeviceSelector) Result {
	texts, err := s.compile(class, own)
	if err != nil {
		return Result{}
	}
	for _, text := range texts {
		if !text.endless() {
			continue
		}
		result := Result{Incomplete: true}
		if text.own >= 0 && text.quantities.endless != "" {
			result.Endless = &Endless{text.own, text.quantities.endless}
		}
		return result
	}
	search := search{ctx: s.budget.ctx, texts: texts}
	search.result.UnknownPool = unknownPool(texts)
	for _, sort := range sorts(texts) {
		search.of(sort)
	}
	return search.result
}

// compile compiles the selectors of a request, those of its class first.
func (s *Selectors) compile(class, own []resourceapi.DeviceSelector) ([]text, error) {
	var texts []text
	for i, selector := range append(class[:len(class):len(class)], own...) {
		if s.budget.spent() {
			return nil, errors.New("there is no time to compile it")
		}
		text, err := s.text(selector)
		switch {
		case err != nil && i < len(class):
			return nil, fmt.Errorf("selector %d of its class: %w", i, err)
		case err != nil:
			return nil, fmt.Errorf("selector %d: %w", i-len(class), err)
		}
		text.own = i - len(class)
		texts = append(texts, text)
	}
	return texts, nil
}

func (s *Selectors) text(selector resourceapi.DeviceSelector) (text, error) {
	if selector.CEL == nil {
		return text{}, errors.New("it has no expression")
	}
	if known, ok := s.texts.Get(selector.CEL.Expression); ok {
		return known.(text), nil
	}
	compiled, err := s.compiled.Compile(selector.CEL.Expression)
	if err != nil {
		return text{}, errors.New("it does not compile")
	}
	text, err := newText(compiled)
	if err == nil {
		s.texts.Add(selector.CEL.Expression, text)
	}
	return text, err
}
