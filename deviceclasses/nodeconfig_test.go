package deviceclasses

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const nodeHead = "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"

const validNodeConfig = `# of the rack with the old firmware
---
apiVersion: dra.numa/v1alpha1
kind: NodeConfig
reservedCPUs: "0-1,8"
reservedMemory: 256Mi
`

func mustDecodeNodeConfig(t *testing.T, text string) NodeConfig {
	t.Helper()
	config, err := DecodeNodeConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestDecodeNodeConfig(t *testing.T) {
	config := mustDecodeNodeConfig(t, validNodeConfig)
	if config.ReservedCPUs != "0-1,8" || config.ReservedMemoryBytes() != 256<<20 {
		t.Errorf("reserved CPUs %q and memory %d", config.ReservedCPUs, config.ReservedMemoryBytes())
	}
	config, err := DecodeNodeConfig([]byte(`{"apiVersion": "dra.numa/v1alpha1", "kind": "NodeConfig"}`))
	if err != nil || config.ReservedCPUs != "" || config.ReservedMemoryBytes() != 0 {
		t.Errorf("without fields: %+v, %v", config, err)
	}
}

func TestNonsenseInANodeConfigIsOneLine(t *testing.T) {
	const head, profile, pages = nodeHead, nodeHead + "profiles: [{nodeSelector: {a: b}, ", nodeHead + "reservedHugepages: [{"
	for text, want := range map[string]string{
		"":                                                 "the file is empty, want one NodeConfig",
		"# nothing\n---\n# nothing":                        "the file is empty",
		head + "---\n" + head:                              "several documents",
		head + "a: [":                                      "yaml: line 3",
		head + "a: b: c":                                   "yaml: ",
		"- kind: NodeConfig":                               "want a mapping of apiVersion, kind, reservedCPUs, reservedMemory, reservedHugepages, reservedNodeMemory, exclude, exclusivity, cpuQuota, zoneBy, zoneOrder, groups, accounting, otherCPUDrivers, otherMemoryDrivers, numaNodeKeys, numaNodeLists, publishing, devices.presets, devices.include, devices.exclude, devices.bindDrivers, cache, performance, profiles, not array",
		"kind: NodeConfig":                                 `apiVersion: "", allowed is dra.numa/v1alpha1`,
		"apiVersion: v1\nkind: Pod":                        `kind: "Pod", allowed is NodeConfig`,
		"kind: Pod\nspec: {}":                              `kind: "Pod", allowed is NodeConfig`,
		head + "kind: NodeConfig":                          `key "kind" already set`,
		head + "reservedcpus: '0'":                         `unknown field "reservedcpus", allowed are apiVersion, kind, reservedCPUs, reservedMemory, reservedHugepages, reservedNodeMemory, exclude, exclusivity, cpuQuota, zoneBy, zoneOrder, groups, accounting, otherCPUDrivers, otherMemoryDrivers, numaNodeKeys, numaNodeLists, publishing, devices.presets, devices.include, devices.exclude, devices.bindDrivers, cache, performance, profiles`,
		head + "reservedCPUs: 0":                           "reservedCPUs: want a string, not a number",
		head + "reservedCPUs: 1-x":                         `reservedCPUs: cpulist "1-x": id "x" is not a decimal number; want a list such as 0-1,8`,
		head + "reservedMemory: lot":                       "reservedMemory: want a quantity of 0 or more, such as 256Mi",
		head + "reservedMemory: []":                        "reservedMemory: ",
		head + "reservedMemory: -1":                        "reservedMemory: -1, want a quantity of 0 or more",
		head + "reservedHugepages: 2Mi":                    "reservedHugepages: want a list, not a string",
		pages + "size: 2Mi, amount: 3Mi}]":                 `reservedHugepages[0].amount: "3Mi", want a multiple of the size 2Mi`,
		pages + "size: 2Mi}]":                              `reservedHugepages[0].amount: "", want a multiple of the size 2Mi`,
		pages + "size: 2Mi, amount: '0'}]":                 `reservedHugepages[0].amount: "0", want a multiple`,
		pages + "size: 0Mi, amount: 2Mi}]":                 `reservedHugepages[0].size: "0Mi", want the size of a hugepage, such as 2Mi`,
		pages + "amount: 2Mi}]":                            `reservedHugepages[0].size: "", want the size of a hugepage`,
		pages + "size: 2Mi, amount: 2Mi, numaNodes: x}]":   `reservedHugepages[0].numaNodes: cpulist "x": id "x" is not a decimal number; want a list such as 0-1`,
		pages + "size: 2Mi, amount: 2Mi, numaNodes: ' '}]": `reservedHugepages[0].numaNodes: " " has no NUMA node, want a list`,
		pages + "size: 2Mi, amount: 2Mi, node: 0}]":        `unknown field "reservedHugepages[0].node", allowed are numaNodes, size, amount`,
		pages + "size: 2Mi, amount: 2Mi}, {size: 2048Ki, numaNodes: '1', amount: 2Mi}]":                                        "reservedHugepages[1]: reservedHugepages[0] is for the same size and NUMA node",
		pages + "size: 1Gi, amount: 1Gi, numaNodes: 0-1}, {size: 2Mi, amount: 2Mi}, {size: 1Gi, amount: 1Gi, numaNodes: 1-2}]": "reservedHugepages[2]: reservedHugepages[0] is for the same size and NUMA node",
		profile + "reservedHugepages: [{size: 2Mi}]}]":                                                                         `profiles[0].reservedHugepages[0].amount: "", want`,
		head + "exclusivity: all":                                    `exclusivity: "all", allowed are auto, kernel, cooperative, none`,
		head + "exclusivity: true":                                   "exclusivity: want a string, not a bool",
		head + "cache: {guaranteed: {ways: 4}}":                      "cache.os: it is missing, want {ways: <number>} with 1 to 64 ways",
		head + "devices: {preset: [gpu]}":                            `unknown field "devices.preset", allowed are presets, include, exclude, bindDrivers`,
		head + "cache: {pools: 4}":                                   `unknown field "cache.pools", allowed are os, reserved, groups, infra, guaranteed, besteffort, shared, monitor, restore`,
		head + "cache: {groups: [{name: a, cpu: '1'}]}":              `unknown field "cache.groups[0].cpu", allowed are name, cpus, ways, bandwidthPercent, bandwidthMBps`,
		head + "cache: {os: {way: 4}}":                               `unknown field "cache.os.way", allowed are ways`,
		head + "cache: {shared: {way: 4}}":                           `unknown field "cache.shared.way", allowed are ways, members`,
		head + "cache: {besteffort: {min: 4}}":                       `unknown field "cache.besteffort.min", allowed are ways, classes, defaultBandwidthPercent, defaultBandwidthMBps, defaultMinWays, defaultMaxWays, growing`,
		profile + "cache: {guaranteed: {min: 4}}}]":                  `unknown field "profiles[0].cache.guaranteed.min", allowed are ways, classes, defaultBandwidthPercent, defaultBandwidthMBps, defaultWays, validWays`,
		head + "performance: {allow: all}":                           `performance.allow: "all", allowed are none, class, claim`,
		head + "performance: {governor: performance}":                `unknown field "performance.governor", allowed are allow, default`,
		head + "performance: {default: {interrupts: away}}":          `performance.default.interrupts: "away", only claims can move interrupts`,
		head + "performance: {default: {minUncoreFrequency: 2GHz}}":  `performance.default.minUncoreFrequency: "2GHz", only claims can set the uncore`,
		head + "performance: {default: {idleLatency: -1}}":           "performance.default.idleLatency: ",
		head + "performance: {default: {locked: [governor]}}":        `unknown field "performance.default.locked", allowed are minFrequency, maxFrequency, governor, energyPreference, minUncoreFrequency, idleLatency, interrupts, reservedCPUs`,
		profile + "performance: {allow: true}}]":                     "profiles.performance.allow: want a string, not a bool",
		profile + "cache: {os: {ways: 1}}}]":                         "profiles[0].cache: os is the only pool, want one or more of reserved, groups, infra, guaranteed, besteffort, shared",
		head + "zoneBy: NUMA":                                        `zoneBy: "NUMA", allowed are numa, l3, socket, coreType, machine`,
		head + "zoneOrder: first":                                    `zoneOrder: "first", allowed are static, pack, spread`,
		head + "reservedNodeMemory: [{amount: 1Gi}]":                 `reservedNodeMemory[0].numaNodes: "" has no NUMA node, want a list such as 0-1`,
		head + "reservedNodeMemory: [{numaNodes: '0', amount: '0'}]": `reservedNodeMemory[0].amount: "0", want a quantity such as 4Gi`,
		head + "exclude: {memoryOf: x}":                              `exclude.memoryOf: cpulist "x": id "x" is not a decimal number; want a list such as 0-1`,
		head + "exclude: {hugepages: [big]}":                         `exclude.hugepages[0]: "big", want the size of a hugepage, such as 2Mi`,
		head + "exclude: {zone: a}":                                  `unknown field "exclude.zone", allowed are zones, memoryOf, hugepages`,
		head + "numaNodeLists: always":                               `numaNodeLists: "always", allowed are auto, never`,
		head + "cpuQuota: none":                                      `cpuQuota: "none", allowed are lift, keep`,
		head + "publishing: stopped":                                 `publishing: "stopped", allowed are running, paused`,
		head + "groups: kafka":                                       "groups: want a list, not a string",
		head + "groups: [kafka, Etcd]":                               `groups[1]: "Etcd", want a small letter and then letters and digits, at most 27 bytes`,
		head + "groups: [a-b]":                                       `groups[0]: "a-b", want a small letter`,
		head + "groups: [" + strings.Repeat("x", 28) + "]":           "at most 27 bytes",
		head + "groups: [a, b, a]":                                   `groups[2]: "a" is in the list twice`,
		head + "groups: [a, b, c, d, e]":                             "groups: 5 names, at most 4 are allowed",
		head + "accounting: scheduler":                               `accounting: "scheduler", allowed are auto, pod-requests`,
		head + "profiles: {}":                                        "profiles: want a list, not an object",
		head + "profiles: [1]":                                       "profiles: want a mapping, not a number",
		head + "profiles: [{}]":                                      "profiles[0].nodeSelector: want at least one label",
		head + "otherCPUDrivers: [a, A_b]":                           `otherCPUDrivers[1]: "A_b": a lowercase RFC 1123 subdomain must consist of`,
		head + "otherMemoryDrivers: [dra.numa]":                      `otherMemoryDrivers[0]: "dra.numa" is this driver, want the name of another one`,
		head + "numaNodeKeys: [numaNode]":                            `numaNodeKeys[0]: "numaNode": want a domain and a name, such as dra.net/numaNode`,
		head + "numaNodeKeys: [A/b]":                                 `numaNodeKeys[0]: "A/b": a lowercase RFC 1123 subdomain must consist of`,
		head + "numaNodeKeys: [a/b/c]":                               `numaNodeKeys[0]: "a/b/c": a valid C identifier must`,
		head + "numaNodeKeys: [a/b, dra.numa/l3]":                    `numaNodeKeys[1]: "dra.numa/l3": it is of this driver or of Kubernetes, want one of another driver`,
		head + "numaNodeKeys: [resource.kubernetes.io/pcieRoot]":     `numaNodeKeys[0]: "resource.kubernetes.io/pcieRoot": it is of this driver`,
		head + "numaNodeKeys: [a/b, a/b]":                            `numaNodeKeys[1]: "a/b": it is in the list twice`,
		head + "numaNodeKeys: [a/b, a/c, a/d, a/e, a/f]":             "numaNodeKeys: 5 keys, at most 4 are allowed",
		head + "numaNodeKeys: [a/" + strings.Repeat("x", 33) + "]":   "at most 63 bytes are allowed before the slash, and 32 behind it",
		profile + "zone: 1}]":                                        `unknown field "profiles[0].zone", allowed are nodeSelector, reservedCPUs, reservedMemory, reservedHugepages, reservedNodeMemory, exclude, exclusivity, cpuQuota, zoneBy, zoneOrder, groups, accounting, otherCPUDrivers, otherMemoryDrivers, numaNodeKeys, numaNodeLists, publishing, devices.presets, devices.include, devices.exclude, devices.bindDrivers, cache, performance`,
		profile + "reservedCPUs: x}]":                                `profiles[0].reservedCPUs: cpulist "x": id "x" is not a decimal number; want a list such as 0-1,8`,
		profile + "reservedMemory: -1}]":                             "profiles[0].reservedMemory: -1, want a quantity",
		profile + "reservedMemory: lot}]":                            "profiles[0].reservedMemory: want a quantity",
		profile + "reservedMemory: 1Gi}, {reservedMemory: lot}]":     "profiles[1].reservedMemory: want a quantity",
		profile + "devices: {preset: [gpu]}}]":                       `unknown field "profiles[0].devices.preset", allowed are presets, include, exclude, bindDrivers`,
		profile + "exclusivity: kernel }, {nodeSelector: {a b: c}}]": `profiles[1].nodeSelector: key "a b": `,
		profile + "exclusivity: kernel }, {nodeSelector: {a: '*'}}]": `profiles[1].nodeSelector[a]: "*": `,
	} {
		config, err := DecodeNodeConfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, config, err, want)
		}
	}
}

func TestProfilesHoldForNodesWithTheirLabels(t *testing.T) {
	config := mustDecodeNodeConfig(t, nodeHead+`
reservedCPUs: "0"
reservedMemory: 1Gi
profiles:
- nodeSelector: {pool: batch}
  reservedCPUs: 0-1
- nodeSelector: {pool: batch, size: large}
  reservedMemory: "0"
  exclusivity: kernel
- nodeSelector: {size: large}
  reservedCPUs: 0-3
`)
	for labels, want := range map[string]string{
		"":                        "0 1073741824 ",
		"pool=web":                "0 1073741824 ",
		"pool=batch":              "0-1 1073741824 ",
		"size=large":              "0-3 1073741824 ",
		"pool=batch,size=large,x": "0-3 0 kernel",
	} {
		node := map[string]string{}
		for label := range strings.SplitSeq(labels, ",") {
			key, value, _ := strings.Cut(label, "=")
			node[key] = value
		}
		settings := config.For(node)
		if got := fmt.Sprintf("%s %d %s", settings.ReservedCPUs, settings.ReservedMemoryBytes(), settings.Exclusivity); got != want {
			t.Errorf("node with %q: %q, want %q", labels, got, want)
		}
	}
}

func FuzzDecodeNodeConfig(f *testing.F) {
	f.Add([]byte(validNodeConfig))
	f.Add([]byte(nodeHead + "profiles: [{nodeSelector: {a: b}, exclusivity: auto, reservedMemory: 5e-3}]"))
	f.Add([]byte("{a: &a [*a]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, again := decodeAndEncode(t, text, DecodeNodeConfig)
		if again == nil {
			return
		}
		got, err := DecodeNodeConfig(again)
		if err != nil || config.For(nil).ReservedMemoryBytes() != got.For(nil).ReservedMemoryBytes() || len(got.Profiles) != len(config.Profiles) {
			t.Errorf("decode(%s) = %+v, %v, want %+v", again, got, err, config)
		}
	})
}

// A field is of the last profile that names it, and of none where that is another node's.
func TestProfileIsWhereAFieldComesFrom(t *testing.T) {
	fields := []string{"reservedCPUs: 0-1", "reservedMemory: 1Mi", "reservedHugepages: []", "reservedNodeMemory: []", "exclude: {zones: [a]}", "exclusivity: none", "cpuQuota: keep", "zoneBy: l3", "zoneOrder: pack", "groups: [a]", "accounting: pod-requests", "otherCPUDrivers: [x]", "otherMemoryDrivers: [x]", "numaNodeKeys: []", "numaNodeLists: never", "publishing: paused", "devices: {presets: [gpu]}", "cache: {os: {ways: 1}, guaranteed: {ways: 4}}", "performance: {allow: class}"}
	if all := reflect.TypeFor[NodeSettings]().NumField(); all != len(fields) {
		t.Errorf("settings have %d fields, of which this test knows %d", all, len(fields))
	}
	for _, field := range fields {
		name, _, _ := strings.Cut(field, ":")
		config := mustDecodeNodeConfig(t, nodeHead+field+"\nprofiles:\n"+
			"- {nodeSelector: {a: b}, "+field+"}\n- {nodeSelector: {a: b}, "+field+"}\n- {nodeSelector: {c: d}, "+field+"}\n- {nodeSelector: {a: b}}\n")
		for label, want := range map[string]string{"a": "profiles[1].", "c": "profiles[2].", "x": ""} {
			value := map[string]string{"a": "b", "c": "d"}[label]
			if got := config.Profile(name, map[string]string{label: value}); got != want {
				t.Errorf("%s of a node with label %s is of %q, want %q", name, label, got, want)
			}
		}
	}
}
