package devnode

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

const address = "0000:3b:00.0"

// folder of the function that tests are about, where its link points to.
const folder = "sys/devices/pci0000:3a/0000:3a:01.0/" + address

// write makes the files of a machine that has the function: text, or with "->"
// before it a link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{
		"sys/bus/pci/devices/" + address: "-> ../../../devices/pci0000:3a/0000:3a:01.0/" + address,
		folder + "/class":                "0x000000",
	}
	for name, text := range files {
		if !strings.HasPrefix(name, "sys/") {
			name = folder + "/" + name
		}
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, files map[string]string) (Access, error) {
	t.Helper()
	return Read(os.DirFS(write(t, files)), address)
}

func TestAFunctionIsReachedByWhatItsDriverMakes(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  Access
	}{
		"no driver": {nil, Access{}},
		"a drive with several paths": {map[string]string{
			"driver":         "-> ../../../../bus/pci/drivers/nvme",
			"nvme/nvme1/dev": "240:1", "nvme/nvme1/uevent": "MAJOR=240\nMINOR=1\nDEVNAME=nvme1\nNVME_TRTYPE=pcie",
			"nvme/nvme1/nvme0c1n1/uevent": "DEVTYPE=disk", "nvme/nvme1/nvme0c1n2/uevent": "DEVTYPE=disk",
			"nvme/nvme1/hwmon3/name": "nvme", "nvme/nvme1/nvme0n3/uevent": "DEVTYPE=disk",
			"sys/class/block/nvme0n1/dev": "259:0", "sys/class/block/nvme0n1/uevent": "MAJOR=259\nMINOR=0\nDEVNAME=nvme0n1\nDEVTYPE=disk",
			"sys/class/block/nvme0n2/dev": "259:7", "sys/class/block/nvme0n2/uevent": "DEVNAME=nvme0n2\nDEVTYPE=disk",
		}, Access{Nodes: []Node{{"/dev/nvme0n1", "b", 259, 0}, {"/dev/nvme0n2", "b", 259, 7}, {"/dev/nvme1", "c", 240, 1}}}},
		"a GPU that computes": {map[string]string{
			"driver": "-> ../../../../bus/pci/drivers/amdgpu", "drm/card1/dev": "226:1", "drm/card1/uevent": "DEVNAME=dri/card1\nDEVTYPE=drm_minor",
			"drm/renderD129/dev": "226:129", "drm/renderD129/uevent": "DEVNAME=dri/renderD129\nDEVTYPE=drm_minor",
			"sys/class/kfd/kfd/dev": "511:0", "sys/class/kfd/kfd/uevent": "DEVNAME=kfd",
		}, Access{Nodes: []Node{{"/dev/dri/card1", "c", 226, 1}, {"/dev/dri/renderD129", "c", 226, 129}}, Shared: []Node{{"/dev/kfd", "c", 511, 0}}}},
		"a card with RDMA, virtual": {map[string]string{
			"driver": "-> ../../../../bus/pci/drivers/mlx5_core", "physfn": "-> ../0000:3b:00.7",
			"net/ens1v0/mtu": "1500", "infiniband/mlx5_2/fw_ver": "1",
			"infiniband_verbs/uverbs2/dev": "231:194", "infiniband_verbs/uverbs2/uevent": "DEVNAME=infiniband/uverbs2",
			"infiniband_mad/umad2/dev": "231:2", "infiniband_mad/umad2/uevent": "DEVNAME=infiniband/umad2",
			"infiniband_mad/issm2/dev": "231:66", "infiniband_mad/issm2/uevent": "DEVNAME=infiniband/issm2",
			"sys/class/misc/rdma_cm/dev": "10:120", "sys/class/misc/rdma_cm/uevent": "DEVNAME=infiniband/rdma_cm",
		}, Access{
			PhysFn: "0000:3b:00.7", Interfaces: []string{"ens1v0"},
			Nodes: []Node{
				{"/dev/infiniband/issm2", "c", 231, 66}, {"/dev/infiniband/umad2", "c", 231, 2}, {"/dev/infiniband/uverbs2", "c", 231, 194},
			},
			Shared: []Node{{"/dev/infiniband/rdma_cm", "c", 10, 120}},
		}},
		"VFIO": {map[string]string{
			"driver": "-> ../../../../bus/pci/drivers/vfio-pci", "iommu_group": "-> ../../../../kernel/iommu_groups/43", "net/left/mtu": "1",
			"sys/class/vfio/43/dev": "243:0", "sys/class/vfio/43/uevent": "DEVNAME=vfio/43",
			"sys/class/misc/vfio/dev": "10:196", "sys/class/misc/vfio/uevent": "DEVNAME=vfio/vfio",
		}, Access{Nodes: []Node{{"/dev/vfio/43", "c", 243, 0}}, Shared: []Node{{"/dev/vfio/vfio", "c", 10, 196}}}},
		"VFIO through iommufd": {map[string]string{
			"driver": "-> ../../../../bus/pci/drivers/mlx5_vfio_pci", "iommu_group": "-> ../../../../kernel/iommu_groups/43",
			"vfio-dev/vfio3/dev": "244:3", "vfio-dev/vfio3/uevent": "DEVNAME=vfio/devices/vfio3",
			"sys/class/misc/iommu/dev": "10:261", "sys/class/misc/iommu/uevent": "DEVNAME=iommu",
		}, Access{Nodes: []Node{{"/dev/vfio/devices/vfio3", "c", 244, 3}}, Shared: []Node{{"/dev/iommu", "c", 10, 261}}}},
		"virtio": {map[string]string{
			"driver": "-> ../../../../bus/pci/drivers/virtio-pci", "virtio5/net/eth1/mtu": "1500",
			"virtio5/block/vda/dev": "254:0", "virtio5/block/vda/uevent": "DEVNAME=vda\nDEVTYPE=disk",
		}, Access{Nodes: []Node{{"/dev/vda", "b", 254, 0}}, Interfaces: []string{"eth1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, row.files)
			if diff := cmp.Diff(row.want, got); diff != "" || err != nil {
				t.Errorf("%v, access (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatCannotBeGivenIsAnError(t *testing.T) {
	const dev, uevent = "nvme/nvme0/dev", "nvme/nvme0/uevent"
	for name, row := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a name that leads elsewhere": {map[string]string{dev: "240:0", uevent: "DEVNAME=../etc/shadow"}, `uevent: DEVNAME "../etc/shadow" is not a path below /dev/`},
		"an absolute name":            {map[string]string{dev: "240:0", uevent: "DEVNAME=/etc/shadow"}, `DEVNAME "/etc/shadow"`},
		"no name":                     {map[string]string{dev: "240:0", uevent: "MAJOR=240"}, `DEVNAME ""`},
		"/dev itself":                 {map[string]string{dev: "240:0", uevent: "DEVNAME=."}, `DEVNAME "."`},
		"a name of two words":         {map[string]string{dev: "240:0", uevent: "DEVNAME=a b"}, `DEVNAME "a b"`},
		"no number":                   {map[string]string{dev: "240", uevent: "DEVNAME=nvme0"}, `nvme0/dev: "240" is not a device number such as 226:0`},
		"a negative number":           {map[string]string{dev: "240:-1", uevent: "DEVNAME=nvme0"}, `"240:-1" is not a device number`},
		"a large major":               {map[string]string{dev: "4096:0", uevent: "DEVNAME=nvme0"}, "device node number 4096:0: allowed are 1:0 to 4095:1048575"},
		"a large minor":               {map[string]string{dev: "1:1048576", uevent: "DEVNAME=nvme0"}, "device node number 1:1048576"},
		"major 0":                     {map[string]string{dev: "0:1", uevent: "DEVNAME=nvme0"}, "device node number 0:1"},
		"an interface with a comma":   {map[string]string{"net/a,b/mtu": "1"}, `"a,b" is not a network interface name`},
		"VFIO without a node":         {map[string]string{"driver": "-> ../vfio-pci", "iommu_group": "-> ../43"}, "neither the function nor its IOMMU group has a device node"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, row.files)
			if err == nil || !strings.HasPrefix(err.Error(), "PCI function "+address+": ") ||
				!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v, %v, want one line with %q", got, err, row.want)
			}
		})
	}
}

func TestAFunctionThatIsGoneIsNamed(t *testing.T) {
	got, err := Read(os.DirFS(t.TempDir()), address)
	if !errors.Is(err, ErrGone) || err.Error() != "PCI function 0000:3b:00.0: the machine no longer has it" {
		t.Errorf("%+v, %v, want ErrGone with the address", got, err)
	}
	for _, name := range []string{"", "../../../etc", "0000:3b:00.0/..", "3b:00.0"} {
		if got, err := Read(os.DirFS(t.TempDir()), name); err == nil || errors.Is(err, ErrGone) {
			t.Errorf("%q: %+v, %v, want an error about the address", name, got, err)
		}
	}
}

// Every function of generated machines can be read, and no two have a node that is
// not shared.
func TestNodesOfGeneratedMachinesAreOfOneFunction(t *testing.T) {
	total := 0
	for _, preset := range fake.Presets() {
		root := preset.Machine.FS()
		owner := map[Node]string{}
		for _, function := range preset.Machine.PCI {
			access, err := Read(root, function.Address)
			if err != nil {
				t.Errorf("%s: %v", preset.Name, err)
			}
			for _, node := range access.Nodes {
				if owner[node] != "" {
					t.Errorf("%s: %+v is of %s and %s", preset.Name, node, owner[node], function.Address)
				}
				owner[node] = function.Address
				total++
			}
		}
	}
	if total < 20 {
		t.Errorf("%d nodes: nothing was tested", total)
	}
}

func FuzzDeviceFiles(f *testing.F) {
	f.Add("240:0", "MAJOR=240\nDEVNAME=nvme0")
	f.Add("259:1", "DEVNAME=dri/../../x\nDEVTYPE=disk")
	f.Fuzz(func(t *testing.T, number, uevent string) {
		major, minor, err := parseNumber(number)
		if err != nil {
			return
		}
		name, node := nameIn(uevent, Node{Major: major, Minor: minor})
		if node.Path = devFolder + name; node.Validate() != nil {
			return
		}
		if path := filepath.Clean(node.Path); path != node.Path || !strings.HasPrefix(path, "/dev/") || strings.ContainsAny(path, "\n\t ") {
			t.Errorf("%q: path %q", uevent, node.Path)
		}
	})
}
