package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// row is an object and what lint finds in it.
type row struct {
	kind   string
	object string // YAML: the devices of a claim or template, or the spec of a class or pod
	// The finding, all empty for none.
	rule, field, message string
}

func manySelectors() string {
	var texts []string
	for i := range 10 {
		texts = append(texts, fmt.Sprintf(`{cel: {expression: 'device.capacity["dra.numa"].?cpu.orValue(quantity("0")).compareTo(quantity("%d")) > 0'}}`, i))
	}
	return strings.Join(texts, ", ")
}

// rows are objects with what lint finds. For each rule, there are also objects in which
// it finds nothing.
func rows() []row {
	return []row{
		{
			kind: "claim",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: root}`,
		},
		{
			kind: "claim",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: x}`,
			rule:    "invalid-parameters",
			field:   "spec.devices.config[0].opaque.parameters",
			message: `partition: "x", allowed are root, isolated, none`,
		},
		{
			kind: "claim",
			object: `
config:
- {opaque: {driver: other, parameters: {a: b}}}
- {opaque: {driver: dra.numa, parameters: {}}}`,
			rule:    "invalid-parameters",
			field:   "spec.devices.config[1].opaque.parameters",
			message: `kind: "", allowed are ZoneConfig, DeviceConfig`,
		},
		{
			kind: "template",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, speed: 1}`,
			rule:    "invalid-parameters",
			field:   "spec.spec.devices.config[0].opaque.parameters",
			message: `unknown field "speed", allowed are apiVersion, kind, cores, l3, placement, partition, mixed, memoryPolicy`,
		},
		{
			kind: "template",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters:
      apiVersion: dra.numa/v1alpha1
      kind: ZoneConfig
      l3: prefer
      cores: whole
      placement: spread`,
		},
		{
			kind: "template",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, l3: require}`,
			rule:    "required-l3-waits",
			field:   "spec.spec.devices.config[0].opaque.parameters",
			message: "l3: the scheduler does not see level-3 caches, so the pod may wait on a node where no single cache has enough free CPUs: write prefer",
		},
		{
			kind: "class",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, cores: half}`,
			rule:    "invalid-parameters",
			field:   "spec.config[0].opaque.parameters",
			message: `cores: "half", allowed are whole, thread, one-thread-per-core`,
		},
		{
			kind: "class",
			object: `
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, mixed: perhaps}`,
			rule:    "invalid-parameters",
			field:   "spec.config[0].opaque.parameters",
			message: "mixed: want a bool, not a string",
		},

		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly:
    deviceClassName: zone.dra.numa
    capacity: {requests: {cpu: 2, memory: 1Gi, hugepages2Mi: 2Mi}}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.numa/cpu: 2, memory: 1Gi}}}`,
			rule:    "unknown-capacity-key",
			field:   "spec.devices.requests[0].exactly.capacity.requests[dra.numa/cpu]",
			message: "no device has this capacity, so the pod would stay Pending: write cpu",
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly:
    deviceClassName: zone.dra.numa
    capacity: {requests: {hugepages-2Mi: 2Mi, memory: 1Gi}}`,
			rule:    "unknown-capacity-key",
			field:   "spec.devices.requests[0].exactly.capacity.requests[hugepages-2Mi]",
			message: "no device has this capacity, so the pod would stay Pending: write hugepages2Mi",
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, memory: 0}}}`,
			rule:    "cpus-without-memory",
			field:   "spec.devices.requests[0].exactly.capacity.requests",
			message: "the container's memory may come from any NUMA node: request memory too",
		},
		{
			kind: "template",
			object: `
requests:
- name: z
  firstAvailable:
  - name: a
    deviceClassName: zone.dra.numa
    capacity: {requests: {cpu: 2, memory: 1Gi}}
  - name: b
    deviceClassName: zone.dra.numa
    capacity: {requests: {cpu: 2, hugepages2Mi: 2Mi}}`,
			rule:    "hugepages-without-memory",
			field:   "spec.spec.devices.requests[0].firstAvailable[1].capacity.requests",
			message: "hugepages bind the container to the zone, but its other memory is not counted there: request memory too",
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  firstAvailable:
  - name: a
    deviceClassName: zone.dra.numa
    capacity: {requests: {cpu: 2}}
config:
- requests: [z/a]
  opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, memoryPolicy: bind}`,
			rule:    "bind-without-memory",
			field:   "spec.devices.requests[0].firstAvailable[0].capacity.requests",
			message: "memoryPolicy: bind needs memory or hugepages in the request",
		},
		{
			kind: "claim",
			object: `
requests:
- name: cache
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}
- name: memory
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {memory: 1Gi}}}
- name: all
  exactly: {deviceClassName: zone.dra.numa, adminAccess: true}
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, memoryPolicy: bind}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, memory: 1Gi}}}
- name: other
  exactly: {deviceClassName: nic}
config:
- opaque:
    driver: dra.numa
    parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, memoryPolicy: bind}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {CPUs: 2}}}`,
			rule:    "unknown-capacity-key",
			field:   "spec.devices.requests[0].exactly.capacity.requests[CPUs]",
			message: "no device has this capacity, so the pod would stay Pending: write cpu",
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cores: 2}}}`,
			rule:    "unknown-capacity-key",
			field:   "spec.devices.requests[0].exactly.capacity.requests[cores]",
			message: "no device has this capacity, so the pod would stay Pending: zones have cpu, memory, and hugepages such as hugepages2Mi",
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  firstAvailable:
  - name: a
    deviceClassName: zone.dra.numa
    capacity: {requests: {hugepages1Gi: 1Gi, memory: 1Gi}}`,
			rule:    "unknown-capacity-key",
			field:   "spec.devices.requests[0].firstAvailable[0].capacity.requests[hugepages1Gi]",
			message: "no zone has this capacity now, so the pod would stay Pending",
		},
		{
			kind: "claim",
			object: `
requests:
- name: nics
  exactly: {deviceClassName: nic, capacity: {requests: {bandwidth: 2}}}`,
		},

		{
			kind: "claim",
			object: `
requests:
- {name: z, exactly: {deviceClassName: zone.dra.numa, count: 1}}
- {name: nics, exactly: {deviceClassName: nic, count: 2}}`,
		},
		{
			kind: "claim",
			object: `
requests:
- {name: z, exactly: {deviceClassName: zone.dra.numa, count: 2}}`,
			rule:    "count-on-shared",
			field:   "spec.devices.requests[0].exactly.count",
			message: "asks for shares of 2 different zones; for a larger share of one zone, ask for more capacity",
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  firstAvailable:
  - {name: one, deviceClassName: zone.dra.numa}
  - {name: two, deviceClassName: zone.dra.numa, count: 2}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  firstAvailable:
  - {name: two, deviceClassName: zone.dra.numa, count: 2}
  - {name: one, deviceClassName: zone.dra.numa}`,
			rule:    "count-on-shared",
			field:   "spec.devices.requests[0].firstAvailable[0].count",
			message: "asks for shares of 2 different zones; for a larger share of one zone, ask for more capacity",
		},
		{
			kind: "template",
			object: `
requests:
- {name: z, exactly: {deviceClassName: zone.dra.numa, allocationMode: All}}`,
			rule:    "count-on-shared",
			field:   "spec.spec.devices.requests[0].exactly.allocationMode",
			message: "All asks for a share of every zone of the node",
		},

		{
			kind: "claim",
			object: `
constraints:
- {matchAttribute: resource.kubernetes.io/numaNode}
requests:
- {name: z, exactly: {deviceClassName: zone.dra.numa}}
- {name: g, exactly: {deviceClassName: nic}}
- {name: nics, exactly: {deviceClassName: nic, count: 4}}`,
		},
		{
			kind: "claim",
			object: `
constraints:
- {matchAttribute: resource.kubernetes.io/numaNode}
requests:
- {name: nics, exactly: {deviceClassName: nic}}
- {name: z, exactly: {deviceClassName: zone.dra.numa}}`,
			rule:    "order-rarest-first",
			field:   "spec.devices.requests",
			message: `request "z" for a zone comes after request "nics": write requests for zones first`,
		},
		{
			kind: "claim",
			object: `
constraints:
- {matchAttribute: resource.kubernetes.io/numaNode}
requests:
- {name: nics, exactly: {deviceClassName: nic, count: 4}}
- {name: g, exactly: {deviceClassName: nic}}`,
			rule:    "order-rarest-first",
			field:   "spec.devices.requests",
			message: `request "g" for fewer devices comes after request "nics": write requests for many devices last`,
		},
		{
			kind: "claim",
			object: `
requests:
- {name: nics, exactly: {deviceClassName: nic}}
- {name: z, exactly: {deviceClassName: zone.dra.numa}}`,
		},
		{
			kind: "claim",
			object: `
constraints:
- {matchAttribute: resource.kubernetes.io/numaNode}
requests:
- {name: nics, exactly: {deviceClassName: absent}}
- {name: z, exactly: {deviceClassName: zone.dra.numa}}`,
		},
		{
			kind: "claim",
			object: `
constraints:
- {matchAttribute: a/b, requests: [nics, x]}
requests:
- {name: nics, exactly: {deviceClassName: nic}}
- {name: z, exactly: {deviceClassName: zone.dra.numa}}`,
		},

		{
			kind: "class",
			object: `
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'`,
		},
		{
			kind: "class",
			object: `
selectors:
- cel:
    expression: 'device.attributes["dra.numa"].kind == "zone" && device.driver == "dra.numa"'`,
		},
		{
			kind: "class",
			object: `
selectors:
- {cel: {expression: 'device.driver == "dra.numa"'}}
- {cel: {expression: 'device.attributes["dra.numa"].kind == "zone"'}}`,
		},
		{
			kind: "class",
			object: `
selectors:
- {cel: {expression: 'device.attributes["dra.numa"].kind == "zone"'}}`,
			rule:    "missing-guard",
			field:   "spec.selectors[0].cel.expression",
			message: `it reads kind, and the scheduler gives up on the pod if a device lacks that: begin with device.driver == "dra.numa" &&`,
		},
		{
			kind: "class",
			object: `
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].socket == 0'`,
			rule:    "missing-guard",
			field:   "spec.selectors[0].cel.expression",
			message: "it reads socket, and the scheduler gives up on the pod if a device lacks that: read it with .?socket.orValue(...)",
		},
		{
			kind: "class",
			object: `
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].?socket.orValue(-1) == 0'`,
		},
		{
			kind: "class",
			object: `
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].coreType == "performance"'`,
			rule:    "missing-guard",
			field:   "spec.selectors[0].cel.expression",
			message: "it reads coreType, and the scheduler gives up on the pod if a device lacks that: read it with .?coreType.orValue(...)",
		},
		{
			kind: "class",
			object: `
selectors:
- {cel: {expression: nonsense}}`,
		},
		{
			kind: "class",
			object: `
extendedResourceName: example.com/zone
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'`,
			rule:    "extended-resource-of-zones",
			field:   "spec.extendedResourceName",
			message: "a pod that requests 1 gets a share of a zone without CPUs and memory: use a claim instead",
		},
		{
			kind: "class",
			object: `
extendedResourceName: example.com/nic
selectors:
- {cel: {expression: 'device.driver == "nic.example.com"'}}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly:
    deviceClassName: zone.dra.numa
    selectors:
    - {cel: {expression: 'device.attributes["dra.numa"].coreType == "performance"'}}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: nics
  exactly:
    deviceClassName: nic
    selectors:
    - {cel: {expression: 'device.attributes["nic.example.com"].speed == 1'}}`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: nics
  exactly:
    deviceClassName: any
    selectors:
    - {cel: {expression: 'device.attributes["nic.example.com"].speed == 1'}}`,
			rule:    "missing-guard",
			field:   "spec.devices.requests[0].exactly.selectors[0].cel.expression",
			message: `it reads speed, and the scheduler gives up on the pod if a device lacks that: begin with device.driver == "NAME" &&, with the driver whose devices you want`,
		},
		{
			kind: "claim",
			object: `
requests:
- name: z
  exactly:
    deviceClassName: zone.dra.numa
    selectors:
    - {cel: {expression: 'device.attributes["resource.kubernetes.io"].numaNode == 1'}}`,
			rule:    "missing-guard",
			field:   "spec.devices.requests[0].exactly.selectors[0].cel.expression",
			message: "it reads numaNode, and the scheduler gives up on the pod if a device lacks that: read it with .?numaNode.orValue(...)",
		},
		{
			kind: "claim",
			object: `
requests:
- name: gpu
  exactly:
    deviceClassName: gpu.dra.numa
    selectors:
    - {cel: {expression: 'device.attributes["dra.numa"].memoryMiB >= 80 * 1024'}}`,
			rule:    "missing-guard",
			field:   "spec.devices.requests[0].exactly.selectors[0].cel.expression",
			message: "it reads memoryMiB, and the scheduler gives up on the pod if a device lacks that: read it with .?memoryMiB.orValue(...)",
		},
		{
			kind: "class",
			object: `
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone" && device.capacity["dra.numa"].cpu.isGreaterThan(quantity("8"))'`,
			rule:    "missing-guard",
			field:   "spec.selectors[0].cel.expression",
			message: "it reads cpu, and the scheduler gives up on the pod if a device lacks that: read it with .?cpu.orValue(...)",
		},
		{
			kind: "class",
			object: `
extendedResourceName: example.com/fast
selectors:
- cel:
    expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].?coreType.orValue("") == "performance"'`,
			rule:    "extended-resource-of-zones",
			field:   "spec.extendedResourceName",
			message: "a pod that requests 1 gets a share of a zone without CPUs and memory: use a claim instead",
		},

		{
			kind: "claim",
			object: `
requests:
- {name: z, exactly: {deviceClassName: zone.dra.numa, selectors: [` + manySelectors() + `]}}`,
			rule:    "too-many-texts",
			field:   "spec.devices.requests",
			message: "the claim has 11 different selectors, but the scheduler keeps only 10 compiled",
		},
		{
			kind: "claim",
			object: `
requests:
- {name: z, exactly: {deviceClassName: absent, selectors: [` + manySelectors() + `]}}`,
		},

		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 4}}}`,
		},
		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 4}, limits: {cpu: 4}}}
- {name: b, resources: {limits: {cpu: 1}}}`,
			rule:    "cpu-limit-on-claim-pod",
			field:   "spec.containers[0].resources.limits[cpu]",
			message: "limit 4 throttles the container on its own CPUs: remove the limit",
		},
		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
resources: {limits: {cpu: 4}}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 4}}}`,
			rule:    "cpu-limit-on-claim-pod",
			field:   "spec.resources.limits[cpu]",
			message: "limit 4 throttles the container on its own CPUs: remove the limit",
		},
		{
			kind: "pod",
			object: `
containers:
- {name: a, resources: {limits: {cpu: 4}}}`,
		},

		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
initContainers:
- {name: i, resources: {claims: [{name: c}], requests: {cpu: 4}}}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 4}}}`,
		},
		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
initContainers:
- name: s
  restartPolicy: Always
  resources: {claims: [{name: c}], requests: {cpu: 4}}
- {name: i, resources: {claims: [{name: c}], requests: {cpu: 4}}}
containers:
- {name: a}`,
		},
		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
- {name: d, resourceClaimName: two}
initContainers:
- {name: i, resources: {claims: [{name: d}], requests: {cpu: 2}}}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 6}}}`,
			rule:    "init-claims-add-up",
			field:   "spec.initContainers[0].resources.claims",
			message: `the pod holds claim "d" (cpu 2) until it ends, in addition to its other claims`,
		},

		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: four}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 500m}}}`,
			rule:    "requests-do-not-match-claim",
			field:   "spec.containers",
			message: "the requests lack cpu 3500m, which the pod's claims hold",
		},
		{
			kind: "pod",
			object: `
containers:
- {name: a, resources: {limits: {hugepages-2Mi: 4Mi, memory: 1Gi}}}`,
			rule:    "hugepages-without-claim",
			field:   "spec.containers[0].resources.limits[hugepages-2Mi]",
			message: "no claim of the container has them, so they may be those of another pod's claim: request them from a zone",
		},
		{
			kind: "pod",
			object: `
resourceClaims:
- {name: c, resourceClaimName: absent}
containers:
- {name: a, resources: {claims: [{name: c}], requests: {cpu: 4}}}`,
			rule:    "unresolved-claim",
			field:   "spec.resourceClaims[0]",
			message: `there is no claim "absent"`,
		},
	}
}

func TestRules(t *testing.T) {
	linter := New(known(t))
	severities := map[string]Severity{}
	for _, rule := range Rules() {
		severities[rule.Name] = rule.Severity
	}
	found := map[string]bool{}
	for _, row := range rows() {
		var want []Finding
		if row.rule != "" {
			want = append(want, Finding{row.rule, severities[row.rule], row.field, row.message})
		}
		got := findingsOf(t, linter, row.kind, row.object)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s %s\n(-want +got):\n%s", row.kind, row.object, diff)
		}
		for _, finding := range got {
			found[finding.Rule] = true
			if len(finding.String()) > 250 { // the API server cuts warnings at 256 bytes
				t.Errorf("%d bytes: %s", len(finding.String()), finding)
			}
		}
	}
	for name := range severities {
		if !found[name] {
			t.Errorf("rule %s found nothing", name)
		}
		delete(found, name)
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

// docs/rules.md has a row for each rule.
func TestRulesAreDocumented(t *testing.T) {
	page := files.Read(t, "../../docs/rules.md")
	for _, rule := range Rules() {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", rule.Name, rule.Severity, rule.Doc); !strings.Contains(page, row) {
			t.Errorf("docs/rules.md lacks the row\n%s", row)
		}
	}
}
