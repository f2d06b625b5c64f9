package quota

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// selector makes up a selector that is true for some device of the node, most of the time.
func (n *node) selector(r random) string {
	target := n.devices[r.IntN(len(n.devices))]
	for range 6 { // most are about zones
		if target.isZone() {
			break
		}
		target = n.devices[r.IntN(len(n.devices))]
	}
	text := target.expression(r, 3)
	if r.chance(55) {
		text = fmt.Sprintf(`device.driver == %q && (%s)`, target.driver, text)
	}
	return text
}

// expression combines conditions.
func (d device) expression(r random, depth int) string {
	if depth == 0 || r.chance(50) {
		return d.condition(r)
	}
	next := func() string { return d.expression(r, depth-1) }
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		return fmt.Sprintf(`(%s) && (%s)`, next(), next())
	case 4:
		return fmt.Sprintf(`(%s) || (%s)`, next(), next())
	case 5:
		return fmt.Sprintf(`!(!(%s))`, next())
	case 6:
		return fmt.Sprintf(`!(!(%s) || !(%s))`, next(), next())
	case 7:
		return fmt.Sprintf(`(%s) ? (%s) : %t`, next(), next(), r.chance(20))
	case 8:
		return fmt.Sprintf(`[true, false].exists(yes, yes == (%s))`, next())
	}
	return fmt.Sprintf(`cel.bind(yes, %s, yes == true)`, next())
}

// condition is true for the device, most of the time.
func (d device) condition(r random) string {
	attributes, standard := fmt.Sprintf(`device.attributes[%q]`, d.driver), `device.attributes["resource.kubernetes.io"]`
	number := func(name string) (at string, is int64) {
		switch value := deviceclasses.Attribute(d.Attributes, deviceclasses.AttributeThreadsPerCore).IntValue; {
		case name == "threadsPerCore" && value != nil:
			return attributes + `.?threadsPerCore.orValue(0)`, *value
		default:
			return standard + `.?numaNode.orValue(-1)`, ptr.Deref(d.Attributes[deviceclasses.AttributeNUMANode].IntValue, -1)
		}
	}
	kind, coreType := d.kind(), ptr.Deref(deviceclasses.Attribute(d.Attributes, deviceclasses.AttributeCoreType).StringValue, "")
	threads, isThreads := number("threadsPerCore")
	numaNode, isNode := number("numaNode")
	ofKind := attributes + `.?kind.orValue("")`
	factor := int64(2 + r.IntN(7))
	switch r.IntN(24) {
	case 0, 1, 2:
		return d.amounts(r)
	case 3:
		return fmt.Sprintf(`%s == %q`, ofKind, kind)
	case 4:
		return fmt.Sprintf(`%s != %q`, ofKind, pick(r, "gpu", "zone", "cache", "nic"))
	case 5:
		return fmt.Sprintf(`%s in [%q, %q]`, ofKind, kind, pick(r, "gpu", "zone", "pci"))
	case 6:
		return fmt.Sprintf(`%s.startsWith(%q)`, ofKind, kind[:min(len(kind), 2)])
	case 7:
		return fmt.Sprintf(`%q + %q == %s`, kind[:len(kind)/2], kind[len(kind)/2:], ofKind)
	case 8:
		return fmt.Sprintf(`cel.bind(a, %s, a.?kind.orValue("") == %q)`, attributes, kind)
	case 9:
		return fmt.Sprintf(`%s * %d == %d`, threads, factor, isThreads*factor)
	case 10:
		return fmt.Sprintf(`%s * %s == %d`, threads, threads, isThreads*isThreads)
	case 11:
		return fmt.Sprintf(`(%s + %d) %% %d == %d`, numaNode, factor, factor, (isNode+factor)%factor)
	case 12:
		return fmt.Sprintf(`[1, %d, %d].exists(n, n + 1 == %s + 1)`, isNode, isNode+factor, numaNode)
	case 13:
		return fmt.Sprintf(`%s.?coreType.orValue("").size() == %d`, attributes, len(coreType))
	case 14:
		return fmt.Sprintf(`%s.?coreType.orValue("").endsWith(%q)`, attributes, coreType[len(coreType)/2:])
	case 15:
		return fmt.Sprintf(`has(%s.%s)`, attributes, pick(r, "kind", "kind", "coreType", "l3", "absent"))
	case 16:
		return fmt.Sprintf(`%s.exists(k, k == "kind")`, attributes)
	case 17:
		return fmt.Sprintf(`size(%s) >= %d`, attributes, r.IntN(4))
	case 18:
		return pick(r, `device.allowMultipleAllocations`, `device.allowMultipleAllocations == true`, `!device.allowMultipleAllocations`)
	case 19: // another variable of the same name
		return pick(r, `[{"driver": "dra.cpu"}].exists(device, device.driver == "dra.cpu")`,
			`cel.bind(device, {"driver": "dra.cpu"}, device.driver == "dra.cpu")`,
			`cel.bind(device, {"attributes": {"dra.numa": {"kind": "gpu"}}}, device.attributes["dra.numa"].kind == "gpu")`)
	case 20:
		return pick(r, `!(dyn(device) == dyn({}))`, `[device].size() == 1`, `optional.of(device).hasValue()`, `true`)
	case 21:
		return fmt.Sprintf(`device.driver.startsWith(%q)`, d.driver[:3])
	case 22:
		return fmt.Sprintf(`device.driver in ["dra.numa", %q]`, d.driver)
	}
	return fmt.Sprintf(`"kind" in %s && %s.kind == %q`, attributes, attributes, kind)
}

// amounts compares a capacity with a range that the device is in.
func (d device) amounts(r random) string {
	name := pick(r, deviceclasses.CapacityCPU, deviceclasses.CapacityCPU, deviceclasses.CapacityMemory)
	capacity, has := d.Capacity[name]
	if !has {
		return `size(device.capacity) == 0`
	}
	all := fmt.Sprintf(`device.capacity[%q]`, d.driver)
	half := strings.TrimSuffix(string(name), string(name[1:]))
	at := pick(r,
		fmt.Sprintf(`%s.?%s.orValue(quantity("0"))`, all, name),
		fmt.Sprintf(`%s[?%q + %q].orValue(quantity("0"))`, all, half, name[1:]),
		fmt.Sprintf(`cel.bind(c, %s, c.?%s.orValue(quantity("0")))`, all, name))
	value := capacity.Value.Value()
	low, high := max(value-1-r.Int64N(value+1), 0), value+1+r.Int64N(value+1)
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf(`%s.isGreaterThan(quantity("%d")) && %s.isLessThan(quantity("%d"))`, at, low, at, high)
	case 1:
		return fmt.Sprintf(`%s.compareTo(quantity("%d")) >= 0`, at, low)
	case 2:
		return fmt.Sprintf(`%s.asInteger() %% 7 == %d`, at, value%7)
	}
	return fmt.Sprintf(`!%s.isLessThan(quantity("%d")) && %s.sub(quantity("%d")).compareTo(quantity("0")) < 0`, at, low, at, high)
}
