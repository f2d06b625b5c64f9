package simulate

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// outcome is what becomes of a pod that has the requests, on a machine of one zone of 8 CPUs
// and one GPU whose driver is another one. changed may change the manifest of the node.
func outcome(t *testing.T, release, requests string, changed func(string) string) string {
	t.Helper()
	rules, err := RulesOf(release)
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, changed(zonedNode("n1", []zone{{8, 1, "8Gi"}})), zoneClass, slice("gpu.example.com", "", "{name: gpu-0}"), claimingPod("p", requests))
	c, err := New(s, rules)
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Run(t.Context(), s.Waiting(), Options{AllNodes: true})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(result.Aborted) > 0:
		return "gives up: " + result.Aborted[0].Err.Error()
	case len(result.Unschedulable) > 0:
		return "no: " + result.Unschedulable[0].Reasons[0].Reason
	}
	text := ""
	for _, a := range result.Pods[0].Claims[0].Allocations {
		text += fmt.Sprintf("%s=%s", a.Request, a.Device)
		for _, name := range []string{"cpu", "dra.numa/cpu"} {
			if amount, has := a.ConsumedCapacity[resourceapi.QualifiedName(name)]; has {
				text += fmt.Sprintf(" %s:%s", name, amount.String())
			}
		}
		text += "; "
	}
	return strings.TrimSuffix(text, "; ")
}

func TestRulesOfReleases(t *testing.T) {
	const (
		gives    = "gives up: claim default/p-devices-"
		twice    = `checking capacity for device numa-0: capacity "cpu" requested both as "cpu" and as "dra.numa/cpu"`
		negative = `checking capacity for device numa-0: capacity "cpu": capacity value is negative: request -2`
	)
	as := func(manifest string) string { return manifest }
	older := func(manifest string) string {
		return strings.Replace(manifest, "      cpu: {value", "      dra.numa/cpu: {value", 1)
	}
	updated := func(manifest string) string {
		return strings.Replace(manifest, "resourceSliceCount: 1", "resourceSliceCount: 2", 1)
	}
	both := zoneRequest("zone", "cpu: 2, dra.numa/cpu: 2")
	gpus := func(count int) string {
		return fmt.Sprintf("{name: gpu, exactly: {deviceClassName: gpu.example.com, count: %d}}", count)
	}
	var many strings.Builder
	for i := range 33 {
		fmt.Fprintf(&many, "c%d: 1, ", i)
	}
	for name, row := range map[string]struct {
		requests  string
		node      func(string) string
		was, will string // in 1.37 and 1.38
	}{
		"a capacity":                    {zoneRequest("zone", "cpu: 2"), as, "zone=numa-0 cpu:2", "zone=numa-0 cpu:2"},
		"a capacity with its domain":    {zoneRequest("zone", "dra.numa/cpu: 2"), as, "no: ", "zone=numa-0 cpu:2"},
		"too much of it":                {zoneRequest("zone", "dra.numa/cpu: 9"), as, "no: ", "no: request zone: asks for 9 cpu of one device"},
		"of a slice with the domain":    {zoneRequest("zone", "cpu: 2"), older, "no: ", "zone=numa-0 dra.numa/cpu:2"},
		"with both domains":             {zoneRequest("zone", "dra.numa/cpu: 2"), older, "zone=numa-0 dra.numa/cpu:2", "zone=numa-0 dra.numa/cpu:2"},
		"of another domain":             {zoneRequest("zone", "a.b/cpu: 2"), as, "no: ", "no: "},
		"both spellings":                {both, as, "no: ", gives + "|, request zone: " + twice},
		"both, and a device without":    {strings.Replace(both, "cpu: 2", "cpu: 2, other: 1", 1), as, "no: ", "no: "},
		"both, after what is not there": {gpus(2) + ", " + both, as, "no: ", "no: request gpu: "},
		"both, after what is there":     {gpus(1) + ", " + both, as, "no: ", gives + "|, request zone: " + twice},
		"both, as a second alternative": {
			"{name: zone, firstAvailable: [{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}, {name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, dra.numa/cpu: 2}}}]}",
			as, "zone/a=numa-0 cpu:4", "zone/a=numa-0 cpu:4",
		},
		"both, if the first alternative is too much": {
			"{name: zone, firstAvailable: [{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 10}}}, {name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, dra.numa/cpu: 2}}}]}",
			as, "no: ", gives + "|, request zone/b: " + twice,
		},
		"less than nothing":                     {zoneRequest("zone", "cpu: -2"), as, "zone=numa-0 cpu:", gives + "|, request zone: " + negative},
		"33 capacities":                         {zoneRequest("zone", strings.TrimSuffix(many.String(), ", ")), as, "no: request zone: ", `no: request "zone" of ResourceClaim "p-devices-|" asks for 33 capacities, allowed are 32`},
		"all devices of a pool that is changed": {"{name: all, exactly: {deviceClassName: zone.dra.numa, allocationMode: All}}", updated, gives + "|pool dra.numa/n1 is currently being updated", "no: claim default/p-devices-|pool dra.numa/n1 is currently being updated"},
	} {
		for release, want := range map[string]string{"1.37": row.was, "v1.38.0-beta.0": row.will} {
			got := outcome(t, release, "requests: ["+row.requests+"]", row.node)
			begins, has, _ := strings.Cut(want, "|")
			if !strings.HasPrefix(got, begins) || !strings.Contains(got, has) {
				t.Errorf("%s, %s: %s\nwant %s", name, release, got, want)
			}
		}
	}
}

func TestRulesOf(t *testing.T) {
	for text, want := range map[string]string{
		"1.38": "1.38", "v1.37.2+k3s1": "1.37", "1.35": "1.36", "v1.40.0": "1.38", "1.38.0-beta.0": "1.38", "2.0": "", "": "", "new": "",
	} {
		rules, err := RulesOf(text)
		if (want == "") != (err != nil) || err == nil && rules.Release() != want {
			t.Errorf("%q: release %s, %v, want %s", text, rules.Release(), err, want)
		}
	}
	for release, want := range map[string][2]bool{"1.36": {false, false}, "1.37": {true, false}, "1.38": {true, true}} {
		rules, err := RulesOf(release)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{rules.gates[gateDeviceTaintRules], rules.gates[gateFractionalRange]}; got != want {
			t.Errorf("%s: %s and %s are %v, want %v", release, gateDeviceTaintRules, gateFractionalRange, got, want)
		}
		if off := rules.Observed(map[string]bool{gateConsumableCapacity: false}); off.gates[gateConsumableCapacity] || !rules.gates[gateConsumableCapacity] || off.Release() != release {
			t.Errorf("%s with a gate that the cluster reports: %+v", release, off)
		}
	}
}
