package pick

import (
	"fmt"
	"strings"
)

// CorePolicy says how a claim shares physical cores with other claims. A core is broken
// if only a part of it is free.
type CorePolicy uint8

// The core policies.
const (
	// WholeCores, "whole": as far as possible, the CPUs are whole cores with all their
	// siblings. The rest comes from broken cores. If they do not have enough, it breaks
	// one free core.
	WholeCores CorePolicy = iota
	// SingleThreads, "thread": broken cores are filled first. Then as few free cores as
	// possible are used.
	SingleThreads
	// OneThreadPerCore, "one-thread-per-core": each CPU is the lowest CPU of a core
	// that is completely free. Its siblings stay idle.
	OneThreadPerCore
)

// L3Policy says how important it is that a claim's CPUs share one level-3 cache.
type L3Policy uint8

// The L3 policies. Cores without a known L3 never count as sharing one.
const (
	// AnyL3, "any": as few L3s as possible with the cores that [CorePolicy] prefers.
	AnyL3 L3Policy = iota
	// PreferOneL3, "prefer": as few L3s as possible, and only then whole cores. It
	// breaks a core only if AnyL3 would break one too. With [SingleThreads], which
	// expects other claims on its cores, it uses as many free cores as necessary.
	PreferOneL3
	// RequireOneL3, "require": one L3 in each zone, or [ErrNotEnough].
	RequireOneL3
)

// Placement says where to take CPUs if several places have them.
type Placement uint8

// The placements.
const (
	// Pack, "pack": where the most room is left for other claims.
	Pack Placement = iota
	// Spread, "spread": evenly over the dies, then over the L3s of each die. If dies share an
	// L3, evenly over the L3s, then over the dies of each.
	Spread
)

// IsolatedPolicy says what to do with isolated CPUs (kernel parameter isolcpus=).
type IsolatedPolicy uint8

// The policies for isolated CPUs.
const (
	AnyIsolated    IsolatedPolicy = iota // "any": they are like all other CPUs
	AvoidIsolated                        // "avoid": none of them
	PreferIsolated                       // "prefer": as many of them as possible, then other CPUs
)

// policy is one of several names. Its value is the index of the name.
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

// known returns an error if the policy has no name. The error lists the allowed names.
func known[P policy](p P) error {
	if p == 0 {
		return nil // the default; there is no need to look at the names
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
