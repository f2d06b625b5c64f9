package lint

import (
	"maps"
	"math"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// order finds the first request that should come before the request that it follows, if a
// constraint binds the two.
func (l *Linter) order(devices string, spec resourceapi.ResourceClaimSpec, asks []ask) []Finding {
	for i := range len(asks) - 1 {
		before, after := asks[i], asks[i+1]
		if before.alternative || after.alternative || !bound(spec.Devices.Constraints, before.request, after.request) {
			continue
		}
		switch kinds := [2]kind{l.kindOf(before), l.kindOf(after)}; {
		case kinds == [2]kind{others, zones}:
			return []Finding{warn(OrderRarestFirst, devices+".requests", "request %q for a zone comes after request %q: write requests for zones first", after.request, before.request)}
		case kinds == [2]kind{others, others} && size(before) > size(after):
			return []Finding{warn(OrderRarestFirst, devices+".requests", "request %q for fewer devices comes after request %q: write requests for many devices last", after.request, before.request)}
		}
	}
	return nil
}

// kind is what a request gets.
type kind int

const (
	unknown kind = iota // its class is not known
	zones
	others
)

func (l *Linter) kindOf(ask ask) kind {
	switch class := l.known.DeviceClass(ask.class); {
	case class == nil:
		return unknown
	case l.ofZones(class, ask):
		return zones
	}
	return others
}

// size is how many devices a request asks for.
func size(ask ask) int64 {
	if ask.mode == resourceapi.DeviceAllocationModeAll {
		return math.MaxInt64
	}
	return max(ask.count, 1)
}

// bound reports whether a constraint is about both requests.
func bound(constraints []resourceapi.DeviceConstraint, a, b string) bool {
	return slices.ContainsFunc(constraints, func(constraint resourceapi.DeviceConstraint) bool {
		about := func(request string) bool {
			return len(constraint.Requests) == 0 || slices.ContainsFunc(constraint.Requests, func(named string) bool {
				main, _, _ := strings.Cut(named, "/")
				return main == request
			})
		}
		return about(a) && about(b)
	})
}

// texts counts the different selectors that the scheduler evaluates for a claim.
func (l *Linter) texts(devices string, asks []ask) []Finding {
	texts := map[string]bool{}
	for _, ask := range asks {
		selectors := ask.selectors
		if class := l.known.DeviceClass(ask.class); class != nil {
			selectors = slices.Concat(class.Spec.Selectors, selectors)
		}
		for _, selector := range selectors {
			if selector.CEL != nil {
				texts[selector.CEL.Expression] = true
			}
		}
	}
	if len(texts) <= schedulerCachedTexts {
		return nil
	}
	return []Finding{warn(TooManyTexts, devices+".requests", "the claim has %d different selectors, but the scheduler keeps only %d compiled", len(texts), schedulerCachedTexts)}
}

func sortedKeys[V any](m map[resourceapi.QualifiedName]V) []resourceapi.QualifiedName {
	return slices.Sorted(maps.Keys(m))
}
