package pick

import (
	"fmt"
	"strings"
)

// CorePolicy says how a claim shares physical cores with others.
type CorePolicy uint8

// The core policies.
const (
	// WholeCores, "whole": as many CPUs as possible are all the siblings of a core. What is left over comes from cores
	// that others hold a part of, or else breaks one core.
	WholeCores CorePolicy = iota
	// SingleThreads, "thread": broken cores are filled first, then as few fresh ones as possible are opened.
	SingleThreads
	// OneThreadPerCore, "one-thread-per-core": each CPU is the lowest of a core that nobody else has a part of; its
	// siblings are kept idle.
	OneThreadPerCore
)

// L3Policy says how much it matters that a claim's CPUs share one level-3 cache.
type L3Policy uint8

// The L3 policies. Cores of which no L3 is described never count as sharing one.
const (
	// AnyL3, "any": as few L3s as the cores allow that [CorePolicy] wants.
	AnyL3 L3Policy = iota
	// PreferOneL3, "prefer": as few L3s as possible, and only then whole cores. It breaks a core only where AnyL3 would
	// too; with [SingleThreads], which expects others on its cores, it opens as many as it takes.
	PreferOneL3
	// RequireOneL3, "require": one L3 in each zone, or [ErrNotEnough].
	RequireOneL3
)

// Placement says where CPUs go that could be in several places.
type Placement uint8

// The placements.
const (
	// Pack, "pack": where they leave the largest room for others.
	Pack Placement = iota
	// Spread, "spread": evenly over the dies, then over the L3s of each.
	Spread
)

// IsolatedPolicy says what to do with the CPUs of isolcpus=.
type IsolatedPolicy uint8

// The policies for isolated CPUs.
const (
	AnyIsolated    IsolatedPolicy = iota // "any": they are like all others
	AvoidIsolated                        // "avoid": never one of them
	PreferIsolated                       // "prefer": as many of them as possible, then others
)

// policy is a choice among names; its value is the position of its name.
type policy interface {
	~uint8
	names() (of string, all []string)
}

func (CorePolicy) names() (string, []string) {
	return "cores", []string{"whole", "thread", "one-thread-per-core"}
}
func (L3Policy) names() (string, []string)  { return "l3", []string{"any", "prefer", "require"} }
func (Placement) names() (string, []string) { return "placement", []string{"pack", "spread"} }
func (IsolatedPolicy) names() (string, []string) {
	return "isolated", []string{"any", "avoid", "prefer"}
}

// known returns an error that lists what is allowed unless the policy has a name.
func known[P policy](p P) error {
	if p == 0 {
		return nil // the default, without a look at the names
	}
	if of, all := p.names(); int(p) >= len(all) {
		return fmt.Errorf("%s %d: allowed are %s", of, p, strings.Join(all, ", "))
	}
	return nil
}

func name[P policy](p P) string {
	if err := known(p); err != nil {
		return fmt.Sprintf("unknown(%d)", uint8(p))
	}
	_, all := p.names()
	return all[p]
}

func parse[P policy](p *P, text []byte) error {
	of, all := (*p).names()
	for i, name := range all {
		if name == string(text) {
			*p = P(i)
			return nil
		}
	}
	return fmt.Errorf("%s %.40q: allowed are %s", of, text, strings.Join(all, ", "))
}

// String returns the policy's name.
func (p CorePolicy) String() string { return name(p) }

// MarshalText returns the policy's name.
func (p CorePolicy) MarshalText() ([]byte, error) { return []byte(name(p)), known(p) }

// UnmarshalText reads a policy's name.
func (p *CorePolicy) UnmarshalText(text []byte) error { return parse(p, text) }

// String returns the policy's name.
func (p L3Policy) String() string { return name(p) }

// MarshalText returns the policy's name.
func (p L3Policy) MarshalText() ([]byte, error) { return []byte(name(p)), known(p) }

// UnmarshalText reads a policy's name.
func (p *L3Policy) UnmarshalText(text []byte) error { return parse(p, text) }

// String returns the placement's name.
func (p Placement) String() string { return name(p) }

// MarshalText returns the placement's name.
func (p Placement) MarshalText() ([]byte, error) { return []byte(name(p)), known(p) }

// UnmarshalText reads a placement's name.
func (p *Placement) UnmarshalText(text []byte) error { return parse(p, text) }

// String returns the policy's name.
func (p IsolatedPolicy) String() string { return name(p) }

// MarshalText returns the policy's name.
func (p IsolatedPolicy) MarshalText() ([]byte, error) { return []byte(name(p)), known(p) }

// UnmarshalText reads a policy's name.
func (p *IsolatedPolicy) UnmarshalText(text []byte) error { return parse(p, text) }
