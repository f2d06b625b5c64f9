package driver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ReservedHugepages returns what the list of a NodeConfig reserves of the machine. It is
// nil only if the list is. An error begins with the index of the entry.
func ReservedHugepages(machine numa.Machine, list []deviceclasses.HugepageReservation) (zones.Reservations, error) {
	if list == nil {
		return nil, nil
	}
	reserved := make(zones.Reservations, 0, len(list))
	for i, entry := range list {
		one, err := reservation(machine, entry)
		if err != nil {
			return nil, fmt.Errorf("[%d].%w", i, err)
		}
		reserved = append(reserved, one)
	}
	return reserved, nil
}

// ReservedNodeMemory returns what the list of a NodeConfig reserves of the machine. An error
// begins with the index of the entry.
func ReservedNodeMemory(machine numa.Machine, list []deviceclasses.MemoryReservation) (reserved zones.Reservations, err error) {
	for i, entry := range list {
		nodes, err := entry.Nodes()
		if err == nil {
			err = checkPossible(machine, nodes)
		}
		if err != nil {
			return nil, fmt.Errorf("[%d].numaNodes: %w", i, err)
		}
		bytes, err := entry.Bytes()
		if err != nil {
			return nil, fmt.Errorf("[%d].%w", i, err)
		}
		reserved = append(reserved, zones.Reservation{Nodes: nodes, Bytes: bytes})
	}
	return reserved, nil
}

// ExcludedMemory returns the memory and hugepages of the machine that a NodeConfig excludes,
// which may be nil. An error begins with the field of it.
func ExcludedMemory(machine numa.Machine, exclude *deviceclasses.Exclusion) (excluded zones.Reservations, err error) {
	nodes, err := exclude.Nodes()
	if err != nil {
		return nil, err
	}
	if err := checkPossible(machine, nodes); err != nil {
		return nil, fmt.Errorf("memoryOf: %w", err)
	}
	sizes := hugepageSizes(machine)
	if !nodes.IsEmpty() {
		for _, size := range append(sizes, "") {
			excluded = append(excluded, zones.Reservation{Nodes: nodes, Size: size, Bytes: zones.Everything})
		}
	}
	if exclude == nil {
		return excluded, nil
	}
	for i, text := range exclude.Hugepages {
		size, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("hugepages[%d]: %w", i, err)
		}
		name := binary(uint64(size.Value()))
		if !slices.Contains(sizes, name) {
			return nil, fmt.Errorf("hugepages[%d]: the kernel has no hugepages of %s, allowed are %s", i, name, cmp.Or(strings.Join(sizes, ", "), "none"))
		}
		excluded = append(excluded, zones.Reservation{Size: name, Bytes: zones.Everything})
	}
	return excluded, nil
}

// CheckExcludedZones returns an error if the machine has not all of the zones. The daemon goes
// on: a NUMA node that is offline may come back.
func CheckExcludedZones(machine numa.Machine, zoneBy string, names []string) error {
	var all []string
	for _, zone := range zones.Of(&machine, zoneBy) {
		all = append(all, zone.Device)
	}
	var faults []error
	for i, name := range names {
		if !slices.Contains(all, name) {
			faults = append(faults, fmt.Errorf("zones[%d]: the machine has no zone %q, allowed are %s", i, name, strings.Join(all, ", ")))
		}
	}
	return errors.Join(faults...)
}

// ReservedMemory decides which memory and hugepages no claim gets: what the operator
// reserves, else what the reservedMemory of the kubelet's configuration file says. Memory
// is of each NUMA node. If memory or hugepages is nil, the operator says nothing of it.
func ReservedMemory(machine numa.Machine, memory *resource.Quantity, hugepages zones.Reservations, kubeletConfig []byte) (zones.Reservations, error) {
	reserved := slices.Clone(hugepages)
	if memory != nil {
		reserved = append(reserved, zones.Reservation{Bytes: uint64(memory.Value())})
	}
	if memory != nil && hugepages != nil {
		return reserved, nil
	}
	kubelet, err := readKubelet(kubeletConfig)
	if err != nil {
		return nil, err
	}
	for i, entry := range kubelet.ReservedMemory {
		for _, name := range slices.Sorted(maps.Keys(entry.Limits)) {
			size, huge := strings.CutPrefix(name, "hugepages-")
			if huge && hugepages != nil || !huge && memory != nil {
				continue // the operator has decided
			}
			one, err := kubeletReservation(machine, entry.NumaNode, size, entry.Limits[name])
			if err != nil {
				return nil, fmt.Errorf("kubelet configuration reservedMemory[%d] (%s): %w", i, name, err)
			}
			reserved = append(reserved, one)
		}
	}
	return reserved, nil
}

// kubeletReservation takes a limit of the kubelet's file: of hugepages of a size as in
// "2Mi", or of memory.
func kubeletReservation(machine numa.Machine, node int, size string, limit resource.Quantity) (zones.Reservation, error) {
	wanted := deviceclasses.HugepageReservation{NUMANodes: strconv.Itoa(node), Size: size, Amount: limit.String()}
	if size != "memory" {
		return reservation(machine, wanted)
	}
	nodes, err := wanted.Nodes()
	if err == nil {
		err = checkPossible(machine, nodes)
	}
	if err == nil && limit.Sign() < 0 {
		err = fmt.Errorf("%s, want a quantity of 0 or more", &limit)
	}
	return zones.Reservation{Nodes: nodes, Bytes: uint64(limit.Value())}, err
}

// reservation returns an error if the kernel does not have hugepages of this size, or the
// machine not these NUMA nodes.
func reservation(machine numa.Machine, wanted deviceclasses.HugepageReservation) (zones.Reservation, error) {
	nodes, err := wanted.Nodes()
	if err != nil {
		return zones.Reservation{}, err
	}
	bytes, err := wanted.Bytes()
	if err != nil {
		return zones.Reservation{}, err
	}
	pageBytes, err := wanted.PageBytes()
	if err != nil {
		return zones.Reservation{}, err
	}
	if err := checkPossible(machine, nodes); err != nil {
		return zones.Reservation{}, fmt.Errorf("numaNodes: %w", err)
	}
	one := zones.Reservation{Nodes: nodes, Size: binary(pageBytes), Bytes: bytes}
	if sizes := hugepageSizes(machine); !slices.Contains(sizes, one.Size) {
		return zones.Reservation{}, fmt.Errorf("size: the kernel has no hugepages of %s, allowed are %s", one.Size, cmp.Or(strings.Join(sizes, ", "), "none"))
	}
	return one, nil
}

// CheckReservedPages returns an error if a pool of the machine is smaller than what is
// reserved of it. Claims then get no hugepages of this pool. The daemon goes on: pools are
// often filled after it has started.
func CheckReservedPages(machine numa.Machine, reserved zones.Reservations) error {
	var faults []error
	for _, one := range reserved {
		if one.Size == "" || one.Bytes == zones.Everything {
			continue
		}
		some := false
		for i := range machine.Zones {
			zone := &machine.Zones[i]
			there := poolBytes(zone, one.Size)
			if !one.Nodes.Contains(zone.ID) && (!one.Nodes.IsEmpty() || there == 0) {
				continue
			}
			if some = true; there < one.Bytes {
				faults = append(faults, fmt.Errorf("NUMA node %d has %s of hugepages %s, reserved are %s", zone.ID, binary(there), one.Size, binary(one.Bytes)))
			}
		}
		if !some {
			faults = append(faults, fmt.Errorf("no NUMA node has hugepages of %s, reserved are %s", one.Size, binary(one.Bytes)))
		}
	}
	return errors.Join(faults...)
}

// ReservedBytes returns what no claim gets of a NUMA node: hugepages of the size, or memory
// without hugepages if the size is empty. Of what is excluded, that is all there is.
func (c Config) ReservedBytes(node *numa.Zone, size string) uint64 {
	reserved := c.ReservedMemory.Bytes(node.ID, size)
	switch {
	case reserved < zones.Everything:
		return reserved
	case size != "":
		return poolBytes(node, size)
	default:
		return ptr.Deref(node.MemoryBytes, 0)
	}
}

// hugepageSizes returns the sizes of hugepages that the kernel has.
func hugepageSizes(machine numa.Machine) (sizes []string) {
	for i := range machine.Zones {
		for _, pool := range machine.Zones[i].Hugepages {
			if size := binary(pool.PageBytes); !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}

// poolBytes returns how many bytes of hugepages of a size a NUMA node has.
func poolBytes(zone *numa.Zone, size string) (bytes uint64) {
	for _, pool := range zone.Hugepages {
		if binary(pool.PageBytes) == size {
			bytes += pool.TotalPages * pool.PageBytes
		}
	}
	return bytes
}

// checkPossible returns an error if the machine cannot have all of the NUMA nodes. One that is
// offline may come back.
func checkPossible(machine numa.Machine, nodes cpuset.Set) error {
	possible := machine.Possible
	for _, zone := range machine.Zones {
		possible.Insert(zone.ID)
	}
	if missing := nodes.Difference(possible); !missing.IsEmpty() {
		return fmt.Errorf("the machine has no NUMA node %s, allowed are %s", missing, possible)
	}
	return nil
}
