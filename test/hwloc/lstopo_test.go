package hwloc

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// topology is what lstopo writes; hwloc's hwloc2.dtd.
type topology struct {
	Root      object `xml:"object"`
	Distances []struct {
		Name    string   `xml:"name,attr"`
		Indexes []string `xml:"indexes"`
		Values  []string `xml:"u64values"` // row by row
	} `xml:"distances2"`
}

// object is a part of the machine. Memory and PCI functions hang below the part
// that they are local to.
type object struct {
	Type     string   `xml:"type,attr"`
	ID       string   `xml:"os_index,attr"`
	CPUs     bitmap   `xml:"cpuset,attr"`
	Nodes    bitmap   `xml:"nodeset,attr"`
	Memory   string   `xml:"local_memory,attr"`
	Address  string   `xml:"pci_busid,attr"`
	PCIType  string   `xml:"pci_type,attr"` // 0604 [8086:340a] [0000:0000] 22
	Children []object `xml:"object"`
	Pages    []struct {
		Size  string `xml:"size,attr"`
		Count string `xml:"count,attr"`
	} `xml:"page_type"`
}

// bitmap is a set in hwloc's mask form: the kernel's, but each group begins
// with 0x and zeros are left out, as in 0x000000ff,,0x0000ffff.
type bitmap struct{ cpuset.Set }

func (b *bitmap) UnmarshalXMLAttr(attribute xml.Attr) (err error) {
	groups := strings.Split(attribute.Value, ",")
	for i, group := range groups {
		groups[i] = "0" + strings.TrimPrefix(group, "0x")
	}
	b.Set, err = cpuset.ParseMask(strings.Join(groups, ","))
	return err
}

// lookup finds lstopo; it skips the test where there is none.
func lookup(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("lstopo-no-graphics")
	if err != nil {
		t.Skip("no lstopo-no-graphics to compare with: install Debian's hwloc-nox")
	}
	return program
}

// lstopo describes the machine below folder with hwloc, which it must not mix
// with the one that the test runs on.
func lstopo(t *testing.T, program, folder string) (described topology) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, "--of", "xml", "--disallowed", "--filter", "all:all", "-")
	command.Env = append(os.Environ(), "HWLOC_FSROOT="+folder, "HWLOC_COMPONENTS=linux,stop", "HWLOC_THISSYSTEM=0",
		"HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES=1")
	command.Stderr = t.Output()
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	if err := xml.Unmarshal(output, &described); err != nil {
		t.Fatalf("read the output of %s: %v", program, err)
	}
	return described
}

// facts lists what hwloc says.
func (d topology) facts() facts {
	found := facts{}
	var online, inNodes cpuset.Set
	d.Root.walk(d.Root.CPUs.Set, func(o object, near cpuset.Set) {
		switch o.Type {
		case "PU":
			online = online.Union(o.CPUs.Set)
		case "NUMANode":
			inNodes = inNodes.Union(o.CPUs.Set)
			found.add(zones, "%s", o.ID)
			found.add(zoneCPUs, "%s=%s", o.ID, o.CPUs)
			found.add(zoneMemory, "%s=%s", o.ID, o.Memory)
			for _, page := range o.Pages[min(1, len(o.Pages)):] { // the first is no hugepage
				found.add(hugepages, "%s:%s=%s", o.ID, page.Size, page.Count)
			}
		case "Package":
			found.add(sockets, "%s=%s", o.CPUs, o.ID)
		case "Core":
			found.add(cores, "%s", o.CPUs)
		case "L2Cache":
			found.add(l2s, "%s", o.CPUs)
		case "L3Cache":
			found.add(l3s, "%s", o.CPUs)
		}
		if o.Address != "" {
			class, rest, _ := strings.Cut(o.PCIType, " [")
			found.add(functions, "%s=%s:%s", o.Address, class, rest[:len("8086:340a")])
			found.add(functionCPUs, "%s=%s", o.Address, near)
		}
	})
	found.add(onlineCPUs, "%s", online)
	found.add(strayCPUs, "%s", online.Difference(inNodes))
	for _, matrix := range d.Distances {
		if matrix.Name != "NUMALatency" {
			continue
		}
		ids, values := fields(matrix.Indexes), fields(matrix.Values)
		for i, value := range values {
			found.add(distances, "%s-%s=%s", ids[i/len(ids)], ids[i%len(ids)], value)
		}
	}
	return found
}

// walk visits o and all below it, each with the CPUs of the nearest part of the
// machine that has some.
func (o object) walk(near cpuset.Set, visit func(o object, near cpuset.Set)) {
	if !o.CPUs.IsEmpty() {
		near = o.CPUs.Set
	}
	visit(o, near)
	for _, child := range o.Children {
		child.walk(near, visit)
	}
}

func fields(parts []string) []string {
	return strings.Fields(strings.Join(parts, " "))
}

func version(t *testing.T, program string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%s --version: %w", program, err))
	}
	return strings.TrimSpace(string(output))
}
