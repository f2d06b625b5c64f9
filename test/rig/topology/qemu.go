package topology

import (
	"fmt"
	"strconv"
)

// QEMUArgs renders the machine as arguments of qemu-system-x86_64: machine, CPUs, memory,
// NUMA and PCI devices. Disks, network, kernel, accelerator and, before these arguments,
// IOMMU are the caller's; the caller's own PCI devices have to name bus=pcie.0.
func (t Topology) QEMUArgs() []string {
	args := []string{
		"-machine", "q35",
		"-m", strconv.FormatInt(t.MemoryBytes()>>20, 10) + "M",
		"-smp", fmt.Sprintf("%d,sockets=%d,dies=%d,cores=%d,threads=%d", t.CPUs(), t.Sockets, t.Dies, t.Cores, t.Threads),
	}
	for id, n := range t.NumaNodes {
		cpus := ""
		spans, _ := parseSpans(n.CPUs) // checked by Parse
		for _, s := range spans {
			cpus += ",cpus=" + s.String()
		}
		args = append(args,
			"-object", fmt.Sprintf("memory-backend-ram,id=m%d,size=%dM", id, n.Memory.Value()>>20),
			"-numa", fmt.Sprintf("node,nodeid=%d%s,memdev=m%d", id, cpus, id))
	}
	for i, row := range t.Distances {
		for j, d := range row {
			if i != j {
				args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", i, j, d))
			}
		}
	}
	return append(args, t.pciArgs()...)
}

// pciArgs gives every entry a host bridge of its own on its NUMA node, and every function
// a root port below it. Bus numbers leave 16 for each bridge: one for each of at most 8
// root ports, and room for virtual functions.
func (t Topology) pciArgs() []string {
	var args []string
	bridge, port := "", 0
	for i, p := range t.PCI {
		if !p.SameRoot {
			bridge = fmt.Sprintf("pxb%d", i)
			args = append(args, "-device", fmt.Sprintf("pxb-pcie,id=%s,bus_nr=%d,bus=pcie.0,numa_node=%d", bridge, 32+16*i, p.NumaNode))
		}
		for range p.Count {
			port++
			args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=rp%d,bus=%s,chassis=%d", port, bridge, port))
			for _, device := range deviceArgs(p.Device, port) {
				args = append(args, "-device", device)
			}
		}
	}
	return args
}

// deviceArgs is a device, behind what it needs. A drive can give two virtual functions
// queues and interrupts of their own. Only of virtio's devices QEMU reports errors of
// their link.
func deviceArgs(device string, port int) []string {
	bus := fmt.Sprintf(",id=dev%d,bus=rp%d", port, port)
	drive := fmt.Sprintf("nvme%s,serial=rig%d", bus, port)
	switch device {
	case "nvme":
		return []string{drive}
	case "nvme-sriov":
		subsystem := fmt.Sprintf("subsys%d", port)
		return []string{"nvme-subsys,id=" + subsystem, drive + ",subsys=" + subsystem + ",sriov_max_vfs=2,sriov_vq_flexible=4,sriov_vi_flexible=2"}
	case "virtio-net-pci":
		return []string{device + bus + ",romfile=,aer=on"}
	}
	return []string{device + bus + ",romfile="}
}
