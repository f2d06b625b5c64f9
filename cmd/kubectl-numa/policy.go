package main

import (
	"encoding"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// policy is the value of the flag --policy: what a claim requests in addition to the
// number of CPUs.
type policy struct {
	text       string
	request    pick.Request
	distribute bool // take CPUs from all zones if the user names none
}

// policyKeys returns the keys with their values.
func policyKeys() []policyKey {
	return []policyKey{
		keyOf(pick.Names[pick.CorePolicy]()),
		keyOf(pick.Names[pick.L3Policy]()),
		keyOf(pick.Names[pick.Placement]()),
		keyOf(pick.Names[pick.IsolatedPolicy]()),
		{"coreType", []string{string(numa.StandardCores), string(numa.PerformanceCores), string(numa.EfficientCores)}},
		{"zones", []string{"distribute"}},
	}
}

type policyKey struct {
	name   string
	values []string
}

func keyOf(name string, values []string) policyKey { return policyKey{name, values} }

// String returns the text. With Set and Type, it makes policy the value of a flag.
func (p *policy) String() string { return p.text }

// Type returns the text after the flag's name in the usage.
func (p *policy) Type() string { return "key=value[,...]" }

// Set reads a list of key=value pairs, separated by commas. The key may be omitted if
// no other key has the same value.
func (p *policy) Set(text string) error {
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		key, value, err := keyAndValue(part)
		if err != nil {
			return err
		}
		if slices.Contains(seen, key) {
			return fmt.Errorf("%s is set twice", key)
		}
		seen = append(seen, key)
		if err := p.set(key, value); err != nil {
			return err
		}
	}
	p.text = text
	return nil
}

// keyAndValue finds the key if the user omitted it, and checks the value.
func keyAndValue(part string) (key, value string, err error) {
	key, value, isPair := strings.Cut(part, "=")
	if !isPair {
		value = key
	}
	var names, keysOfValue []string
	for _, k := range policyKeys() {
		names = append(names, k.name)
		switch {
		case isPair && k.name == key:
			if !slices.Contains(k.values, value) {
				return "", "", fmt.Errorf("%s=%s: allowed are %s", key, value, strings.Join(k.values, ", "))
			}
			return key, value, nil
		case !isPair && slices.Contains(k.values, value):
			keysOfValue = append(keysOfValue, k.name)
		}
	}
	switch {
	case isPair:
		return "", "", fmt.Errorf("no key %q, allowed are %s", key, strings.Join(names, ", "))
	case len(keysOfValue) == 0:
		return "", "", fmt.Errorf("no key has the value %q, the keys are %s", value, strings.Join(names, ", "))
	case len(keysOfValue) > 1:
		return "", "", fmt.Errorf("%s is a value of several keys, write %s", value, strings.Join(keysOfValue, "="+value+" or ")+"="+value)
	}
	return keysOfValue[0], value, nil
}

func (p *policy) set(key, value string) error {
	var target encoding.TextUnmarshaler
	switch key {
	case "cores":
		target = &p.request.Cores
	case "l3":
		target = &p.request.L3
	case "placement":
		target = &p.request.Placement
	case "isolated":
		target = &p.request.Isolated
	case "coreType":
		p.request.CoreType = numa.CoreType(value)
		return nil
	default:
		p.distribute = true
		return nil
	}
	return target.UnmarshalText([]byte(value))
}
