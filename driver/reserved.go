package driver

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Reserved decides which CPUs no claim gets: the operator's list, else the
// reservedSystemCPUs of the kubelet's configuration file, else the first core that is not
// isolated. The system always keeps at least one CPU that is online. A CPU
// of a list that is offline stays reserved, for when it comes back.
func Reserved(machine numa.Machine, list string, kubeletConfig []byte) (cpuset.Set, error) {
	if list != "" {
		return reservedList(machine, "reserved CPUs", list)
	}
	kubelet, err := readKubelet(kubeletConfig)
	if err != nil {
		return cpuset.Set{}, err
	}
	if kubelet.ReservedSystemCPUs != "" {
		return reservedList(machine, "kubelet configuration reservedSystemCPUs", kubelet.ReservedSystemCPUs)
	}
	return firstCore(machine)
}

// kubelet is what the kubelet's configuration file says of reservations
// (KubeletConfiguration of kubelet.config.k8s.io/v1beta1).
type kubelet struct {
	ReservedSystemCPUs string `json:"reservedSystemCPUs"`
	ReservedMemory     []struct {
		NumaNode int                          `json:"numaNode"`
		Limits   map[string]resource.Quantity `json:"limits"` // by memory, hugepages-2Mi, …
	} `json:"reservedMemory"`
}

func readKubelet(file []byte) (config kubelet, err error) {
	if err := yaml.Unmarshal(file, &config); err != nil {
		return kubelet{}, fmt.Errorf("kubelet configuration: %w", err)
	}
	return config, nil
}

func reservedList(machine numa.Machine, what, list string) (cpuset.Set, error) {
	reserved, err := cpuset.Parse(list)
	if err != nil {
		return cpuset.Set{}, fmt.Errorf("%s: %w", what, err)
	}
	if reserved.IsEmpty() {
		return cpuset.Set{}, fmt.Errorf("%s %q: name at least one of CPUs %s", what, list, machine.Online)
	}
	if missing := reserved.Difference(machine.Present.Union(machine.Online)); !missing.IsEmpty() {
		return cpuset.Set{}, fmt.Errorf("%s %q: the machine has no CPUs %s, allowed are %s", what, list, missing, machine.Present.Union(machine.Online))
	}
	online := reserved.Intersection(machine.Online)
	if online.IsEmpty() {
		return cpuset.Set{}, fmt.Errorf("%s %q: none of them is online: name at least one of CPUs %s", what, list, machine.Online)
	}
	return reserved, checkHousekeeping(machine, online)
}

// firstCore returns the first core that the system can have: not all of its CPUs are in the
// boot parameter isolcpus.
func firstCore(machine numa.Machine) (cpuset.Set, error) {
	var cores []cpuset.Set
	for _, zone := range machine.Zones {
		for left := zone.CPUs; !left.IsEmpty(); {
			first, _ := left.First()
			core := cpuset.New(first)
			if i := slices.IndexFunc(machine.Cores, func(c numa.Core) bool { return c.CPUs.Contains(first) }); i >= 0 {
				core = machine.Cores[i].CPUs
			}
			if machine.Isolated == nil || !core.IsSubsetOf(*machine.Isolated) {
				return core, nil
			}
			cores, left = append(cores, core), left.Difference(core)
		}
	}
	if len(cores) == 0 {
		return cpuset.Set{}, errors.New("machine has no zone with CPUs")
	}
	return cores[0], checkHousekeeping(machine, cores[0])
}

// checkHousekeeping returns an error if all reserved CPUs are in the boot parameter
// isolcpus, which keeps tasks off them. Claims could then take every CPU on which the
// system may run. The kernel does not give the last such CPU to a partition, so a
// container that the scheduler has placed would not start.
func checkHousekeeping(machine numa.Machine, reserved cpuset.Set) error {
	if machine.Isolated == nil || !reserved.IsSubsetOf(*machine.Isolated) {
		return nil
	}
	return fmt.Errorf("reserved CPUs %s are all in isolcpus=%s, which leaves the system none: reserve at least one of CPUs %s",
		reserved, machine.Isolated, machine.Online.Difference(*machine.Isolated))
}
