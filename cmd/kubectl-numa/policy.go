package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// policy is the value of the flag --policy: what a claim says in its ZoneConfig about which
// CPUs it gets.
type policy struct {
	text   string
	config deviceclasses.ZoneConfig
}

// policyKeys returns the keys with their values, which are those of a ZoneConfig.
func policyKeys() []policyKey {
	return []policyKey{
		{"cores", []string{deviceclasses.CoresWhole, deviceclasses.CoresThread, deviceclasses.CoresOneThreadPerCore}},
		{"l3", []string{deviceclasses.L3Any, deviceclasses.L3Prefer, deviceclasses.L3Require}},
		{"coreType", []string{deviceclasses.CorePerformance, deviceclasses.CoreEfficient}},
		{"placement", []string{deviceclasses.PlacementPack, deviceclasses.PlacementSpread, deviceclasses.PlacementDistribute}},
	}
}

type policyKey struct {
	name   string
	values []string
}

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
		p.set(key, value)
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

func (p *policy) set(key, value string) {
	switch key {
	case "cores":
		p.config.Cores = value
	case "l3":
		p.config.L3 = value
	case "coreType":
		p.config.CoreType = value
	case "placement":
		p.config.Placement = value
	}
}
