package lint

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	parameters = `opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, `
	zone       = `deviceClassName: zone.dra.numa`
	bind       = `constraints: [{matchAttribute: resource.kubernetes.io/numaNode}], `
	four       = `resourceClaims: [{name: c, resourceClaimName: four}], `
	fourAndTwo = `resourceClaims: [{name: c, resourceClaimName: four}, {name: d, resourceClaimName: two}], `
	uses       = `resources: {claims: [{name: c}], requests: {cpu: 4}}`
)

func manySelectors() string {
	var texts []string
	for i := range 10 {
		texts = append(texts, fmt.Sprintf(`{cel: {expression: 'device.capacity["dra.numa"].cpu.compareTo(quantity("%d")) > 0'}}`, i))
	}
	return strings.Join(texts, ", ")
}

// rows are objects and what is found. Each rule has some that find nothing.
func rows() []struct{ kind, text, want string } {
	return []struct{ kind, text, want string }{
		{"claim", `{config: [{` + parameters + `partition: root}}}]}`, ""},
		{"claim", `{config: [{` + parameters + `partition: x}}}]}`, `invalid-parameters error spec.devices.config[0].opaque.parameters: partition: "x", allowed are root, isolated, none`},
		{"claim", `{config: [{opaque: {driver: other, parameters: {a: b}}}, {opaque: {driver: dra.numa, parameters: {}}}]}`, `invalid-parameters error spec.devices.config[1].opaque.parameters: kind: "", allowed are ZoneConfig, DeviceConfig`},
		{"template", `{config: [{` + parameters + `speed: 1}}}]}`, `invalid-parameters error spec.spec.devices.config[0].opaque.parameters: unknown field "speed", allowed are apiVersion, kind, cores, l3, placement, partition, mixed, memoryPolicy`},
		{"template", `{config: [{` + parameters + `l3: prefer, cores: whole, placement: spread}}}]}`, ""},
		{"template", `{config: [{` + parameters + `l3: require}}}]}`, `required-l3-waits warning spec.spec.devices.config[0].opaque.parameters: l3: the scheduler does not see caches, the pod would wait on a node where no single one has the CPUs free: write prefer`},
		{"class", `{config: [{` + parameters + `cores: half}}}]}`, `invalid-parameters error spec.config[0].opaque.parameters: cores: "half", allowed are whole, thread, one-thread-per-core`},
		{"class", `{config: [{` + parameters + `mixed: perhaps}}}]}`, `invalid-parameters error spec.config[0].opaque.parameters: mixed: want a bool, not a string`},

		{"claim", `{requests: [{name: z, exactly: {` + zone + `, capacity: {requests: {cpu: 2, memory: 1Gi, hugepages2Mi: 2Mi}}}}]}`, ""},
		{"claim", `{requests: [{name: z, exactly: {` + zone + `, capacity: {requests: {dra.numa/cpu: 2}}}}]}`, `unknown-capacity-key warning spec.devices.requests[0].exactly.capacity.requests[dra.numa/cpu]: no device publishes it, the pod would stay Pending: write cpu`},
		{"claim", `{requests: [{name: z, exactly: {` + zone + `, capacity: {requests: {hugepages-2Mi: 2Mi}}}}]}`, `unknown-capacity-key warning spec.devices.requests[0].exactly.capacity.requests[hugepages-2Mi]: no device publishes it, the pod would stay Pending: write hugepages2Mi`},
		{"claim", `{requests: [{name: z, exactly: {` + zone + `, capacity: {requests: {CPUs: 2}}}}]}`, `unknown-capacity-key warning spec.devices.requests[0].exactly.capacity.requests[CPUs]: no device publishes it, the pod would stay Pending: write cpu`},
		{"claim", `{requests: [{name: z, exactly: {` + zone + `, capacity: {requests: {cores: 2}}}}]}`, `unknown-capacity-key warning spec.devices.requests[0].exactly.capacity.requests[cores]: no device publishes it, the pod would stay Pending: zones have cpu, memory, hugepages2Mi and the like`},
		{"claim", `{requests: [{name: z, firstAvailable: [{name: a, ` + zone + `, capacity: {requests: {hugepages1Gi: 1Gi}}}]}]}`, `unknown-capacity-key warning spec.devices.requests[0].firstAvailable[0].capacity.requests[hugepages1Gi]: no node publishes it now, the pod would stay Pending`},
		{"claim", `{requests: [{name: nics, exactly: {deviceClassName: nic, capacity: {requests: {bandwidth: 2}}}}]}`, ""},

		{"claim", `{requests: [{name: z, exactly: {` + zone + `, count: 1}}, {name: nics, exactly: {deviceClassName: nic, count: 2}}]}`, ""},
		{"claim", `{requests: [{name: z, exactly: {` + zone + `, count: 2}}]}`, `count-on-shared warning spec.devices.requests[0].exactly.count: 2 shares of zones are on 2 different NUMA nodes`},
		{"claim", `{requests: [{name: z, firstAvailable: [{name: one, ` + zone + `}, {name: two, ` + zone + `, count: 2}]}]}`, ""},
		{"claim", `{requests: [{name: z, firstAvailable: [{name: two, ` + zone + `, count: 2}, {name: one, ` + zone + `}]}]}`, `count-on-shared warning spec.devices.requests[0].firstAvailable[0].count: 2 shares of zones are on 2 different NUMA nodes`},
		{"template", `{requests: [{name: z, exactly: {` + zone + `, allocationMode: All}}]}`, `count-on-shared warning spec.spec.devices.requests[0].exactly.allocationMode: All is a share of every zone of the node`},

		{"claim", `{` + bind + `requests: [{name: z, exactly: {` + zone + `}}, {name: g, exactly: {deviceClassName: nic}}, {name: nics, exactly: {deviceClassName: nic, count: 4}}]}`, ""},
		{"claim", `{` + bind + `requests: [{name: nics, exactly: {deviceClassName: nic}}, {name: z, exactly: {` + zone + `}}]}`, `order-rarest-first warning spec.devices.requests: request "z" of a zone comes after "nics": zones first`},
		{"claim", `{` + bind + `requests: [{name: nics, exactly: {deviceClassName: nic, count: 4}}, {name: g, exactly: {deviceClassName: nic}}]}`, `order-rarest-first warning spec.devices.requests: request "g" of fewer devices comes after "nics": large sets last`},
		{"claim", `{requests: [{name: nics, exactly: {deviceClassName: nic}}, {name: z, exactly: {` + zone + `}}]}`, ""},
		{"claim", `{` + bind + `requests: [{name: nics, exactly: {deviceClassName: absent}}, {name: z, exactly: {` + zone + `}}]}`, ""},
		{"claim", `{constraints: [{matchAttribute: a/b, requests: [nics, x]}], requests: [{name: nics, exactly: {deviceClassName: nic}}, {name: z, exactly: {` + zone + `}}]}`, ""},

		{"class", `{selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'}}]}`, ""},
		{"class", `{selectors: [{cel: {expression: 'device.attributes["dra.numa"].kind == "zone" && device.driver == "dra.numa"'}}]}`, ""},
		{"class", `{selectors: [{cel: {expression: 'device.driver == "dra.numa"'}}, {cel: {expression: 'device.attributes["dra.numa"].kind == "zone"'}}]}`, ""},
		{"class", `{selectors: [{cel: {expression: 'device.attributes["dra.numa"].kind == "zone"'}}]}`, `missing-guard warning spec.selectors[0].cel.expression: it reads kind, without which a device stops the scheduler: begin with device.driver == "dra.numa" &&`},
		{"class", `{selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].socket == 0'}}]}`, `missing-guard warning spec.selectors[0].cel.expression: it reads socket, without which a device stops the scheduler: read it with .?socket.orValue(...)`},
		{"class", `{selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].?socket.orValue(-1) == 0'}}]}`, ""},
		{"class", `{selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].coreType == "performance"'}}]}`, `missing-guard warning spec.selectors[0].cel.expression: it reads coreType, without which a device stops the scheduler: read it with .?coreType.orValue(...)`},
		{"class", `{selectors: [{cel: {expression: 'nonsense'}}]}`, ""},
		{"class", `{extendedResourceName: example.com/zone, selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'}}]}`, `extended-resource-of-zones warning spec.extendedResourceName: a pod that asks for 1 gets a share of a zone with no CPUs and no memory: have it use a claim`},
		{"class", `{extendedResourceName: example.com/nic, selectors: [{cel: {expression: 'device.driver == "nic.example.com"'}}]}`, ""},
		{"claim", `{requests: [{name: z, exactly: {` + zone + `, selectors: [{cel: {expression: 'device.attributes["dra.numa"].coreType == "performance"'}}]}}]}`, ""},
		{"claim", `{requests: [{name: nics, exactly: {deviceClassName: nic, selectors: [{cel: {expression: 'device.attributes["nic.example.com"].speed == 1'}}]}}]}`, ""},
		{"claim", `{requests: [{name: nics, exactly: {deviceClassName: any, selectors: [{cel: {expression: 'device.attributes["nic.example.com"].speed == 1'}}]}}]}`, `missing-guard warning spec.devices.requests[0].exactly.selectors[0].cel.expression: it reads speed, without which a device stops the scheduler: begin with device.driver == "dra.numa" &&`},

		{"claim", `{requests: [{name: z, exactly: {` + zone + `, selectors: [` + manySelectors() + `]}}]}`, `too-many-texts warning spec.devices.requests: 11 different selectors, the scheduler keeps 10 compiled`},
		{"claim", `{requests: [{name: z, exactly: {deviceClassName: absent, selectors: [` + manySelectors() + `]}}]}`, ""},

		{"pod", `{` + four + `containers: [{name: a, ` + uses + `}]}`, ""},
		{"pod", `{` + four + `containers: [{name: a, resources: {claims: [{name: c}], requests: {cpu: 4}, limits: {cpu: 4}}}, {name: b, resources: {limits: {cpu: 1}}}]}`, `cpu-limit-on-claim-pod warning spec.containers[0].resources.limits[cpu]: 4 throttles the container on CPUs that are its own: leave it out`},
		{"pod", `{` + four + `resources: {limits: {cpu: 4}}, containers: [{name: a, ` + uses + `}]}`, `cpu-limit-on-claim-pod warning spec.resources.limits[cpu]: 4 throttles the container on CPUs that are its own: leave it out`},
		{"pod", `{containers: [{name: a, resources: {limits: {cpu: 4}}}]}`, ""},

		{"pod", `{` + four + `initContainers: [{name: i, ` + uses + `}], containers: [{name: a, ` + uses + `}]}`, ""},
		{"pod", `{` + four + `initContainers: [{name: s, restartPolicy: Always, ` + uses + `}, {name: i, ` + uses + `}], containers: [{name: a}]}`, ""},
		{
			"pod", `{` + fourAndTwo + `initContainers: [{name: i, resources: {claims: [{name: d}], requests: {cpu: 2}}}], containers: [{name: a, resources: {claims: [{name: c}], requests: {cpu: 6}}}]}`,
			`init-claims-add-up warning spec.initContainers[0].resources.claims: claim "d" is held to the pod's end: its cpu 2 add to what others hold`,
		},

		{"pod", `{` + four + `containers: [{name: a, resources: {claims: [{name: c}], requests: {cpu: 500m}}}]}`, `requests-do-not-match-claim warning spec.containers: the requests lack cpu 3500m that the pod's claims hold`},
		{"pod", `{resourceClaims: [{name: c, resourceClaimName: absent}], containers: [{name: a, ` + uses + `}]}`, `unresolved-claim warning spec.resourceClaims[0]: no claim "absent"`},
	}
}

func TestRules(t *testing.T) {
	linter := New(known(t))
	found := map[string]bool{}
	for _, row := range rows() {
		var got []string
		for _, finding := range findingsOf(t, linter, row.kind, row.text) {
			got = append(got, fmt.Sprintf("%s %s %s: %s", finding.Rule, finding.Severity, finding.Field, finding.Message))
			found[finding.Rule] = true
			if len(finding.String()) > 250 { // the API server cuts warnings at 256 bytes
				t.Errorf("%d bytes: %s", len(finding.String()), finding)
			}
		}
		if diff := cmp.Diff(row.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", row.kind, row.text, diff)
		}
	}
	for _, rule := range Rules() {
		if !found[rule.Name] {
			t.Errorf("rule %s found nothing", rule.Name)
		}
		delete(found, rule.Name)
	}
	for name := range found {
		t.Errorf("rule %s is not listed", name)
	}
}

func TestFindingsReadAsAdmissionSaysThem(t *testing.T) {
	for want, finding := range map[string]Finding{
		`spec.x: "a", allowed is b`:        {InvalidParameters, Error, "spec.x", `"a", allowed is b`},
		"spec.y: is slow (too-many-texts)": {TooManyTexts, Warning, "spec.y", "is slow"},
	} {
		if finding.String() != want {
			t.Errorf("%q, want %q", finding.String(), want)
		}
	}
}

// TestRulesAreDocumented holds the page to the rules.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", rule.Name, rule.Severity, rule.Doc); !strings.Contains(string(page), row) {
			t.Errorf("docs/rules.md lacks the row\n%s", row)
		}
	}
}
