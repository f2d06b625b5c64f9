package ways

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Change is the mask that a claim has and the one that it gets. They are equal if the
// claim keeps its mask.
type Change struct {
	ID      string
	Present Mask // 0 for a new claim
	Wanted  Mask
}

// Write is one mask to write to the group of a claim.
type Write struct {
	ID        string
	From, To  Mask // From is 0 if the group had no claim
	Temporary bool // another write of the same plan follows
}

// Plan is an order of writes.
type Plan []Write

// Order returns the writes that make the changes, one after the other. The changes must
// name all groups of all pools that have an exclusive mask in the cache, even those that
// keep their mask. Leave out the group of a claim that has ended, once it has no CPUs and
// no tasks. A group without a Present mask must have no CPUs and no tasks before the plan
// is done.
//
// A mask that is written never overlaps the mask that another group has at that time.
// So if the present masks are disjoint, the masks are disjoint after each write, and a
// claim grows only into ways that another has given up. Each mask has at least
// min_cbm_bits ways, and is one run unless the cache takes sparse masks.
//
// If possible, each group is written at most once. If groups wait for each other in a
// circle, some of them first get a Temporary mask: ways that one of the groups has or
// will have, and that no other group has at that time. If possible, it has as many ways
// as the smaller one of the group's masks before and after. Only if that does not help, a
// temporary mask has fewer ways.
//
// An error wraps [ErrNoOrder] if no order was found even so. An example is two groups of
// one way each that exchange their ways. All other errors name a change that is not
// valid.
func Order(cache numa.CacheAllocation, changes []Change) (Plan, error) {
	if err := check(&cache, changes); err != nil {
		return nil, fmt.Errorf("order masks of %s: %w", cache.Name, err)
	}
	o := ordering{changes: changes, minWays: minWays(&cache)}
	for _, c := range changes {
		o.masks = append(o.masks, c.Present)
		o.ours |= c.Present | c.Wanted
	}
	if o.straight(-1); o.done() || o.around() {
		return o.plan, nil
	}
	return nil, fmt.Errorf("order masks of %s: %s: %w", cache.Name, o.waiting(), ErrNoOrder)
}

// check returns an error for changes that must not be made.
func check(cache *numa.CacheAllocation, changes []Change) error {
	for i, c := range changes {
		for _, other := range changes[:i] {
			if other.ID == c.ID {
				return fmt.Errorf("group %q is named twice", c.ID)
			}
			if other.Wanted&c.Wanted != 0 {
				return fmt.Errorf("groups %q and %q want ways %s and %s, which overlap", other.ID, c.ID, other.Wanted, c.Wanted)
			}
		}
		if !c.Wanted.within(Mask(cache.Mask)) {
			return fmt.Errorf("group %q wants ways %s, the cache has %s", c.ID, c.Wanted, Mask(cache.Mask))
		}
		if least := minWays(cache); c.Wanted.Ways() < least {
			return fmt.Errorf("group %q wants ways %s: a mask has at least %d ways (min_cbm_bits)", c.ID, c.Wanted, least)
		}
		if !cache.Sparse && !c.Wanted.Contiguous() {
			return fmt.Errorf("group %q wants ways %s, which are not contiguous", c.ID, c.Wanted)
		}
	}
	return nil
}

// ordering is a plan in the making.
type ordering struct {
	changes []Change
	minWays int
	ours    Mask // what any of the groups has or wants

	masks  []Mask // of the groups, after the plan so far
	plan   Plan
	budget int
}

// done reports whether each group has what it wants.
func (o *ordering) done() bool {
	for i, c := range o.changes {
		if o.masks[i] != c.Wanted {
			return false
		}
	}
	return true
}

// free returns the ways that group i may have now.
func (o *ordering) free(i int) Mask {
	free := o.ours
	for other, m := range o.masks {
		if other != i {
			free &^= m
		}
	}
	return free
}

// straight writes wanted masks while one of them is free. Group last has a temporary
// mask, and keeps it until another group has been written.
func (o *ordering) straight(last int) {
	for i := 0; i < len(o.changes); i++ {
		if wanted := o.changes[i].Wanted; i != last && o.masks[i] != wanted && wanted.within(o.free(i)) {
			o.write(i, wanted)
			i, last = -1, -1 // others may have waited for this one
		}
	}
}

func (o *ordering) write(i int, to Mask) {
	c := o.changes[i]
	o.plan = append(o.plan, Write{ID: c.ID, From: o.masks[i], To: to, Temporary: to != c.Wanted})
	o.masks[i] = to
}

// waiting lists the groups that do not have what they want.
func (o *ordering) waiting() string {
	var parts []string
	for i, c := range o.changes {
		if o.masks[i] != c.Wanted {
			parts = append(parts, fmt.Sprintf("%s: %s -> %s", c.ID, o.masks[i], c.Wanted))
		}
	}
	return strings.Join(parts, ", ")
}
