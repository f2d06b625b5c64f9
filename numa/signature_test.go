package numa_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// largest is a machine with 512 CPUs.
const largest = "512cpus"

// watermarkSettings decide what the kernel keeps free of each zone.
var watermarkSettings = []string{"proc/sys/vm/min_free_kbytes", "proc/sys/vm/watermark_scale_factor"}

func TestSignatureChangesWithTheMachine(t *testing.T) {
	dir := sample.Folder(t, largest)
	machine, err := numa.Read(os.DirFS(dir))
	if err != nil || machine.Online.Size() != 512 {
		t.Fatalf("%d CPUs, %v", machine.Online.Size(), err)
	}
	for _, name := range watermarkSettings {
		files.Write(t, filepath.Join(dir, name), "10\n")
	}
	before, err := numa.Signature(os.DirFS(dir), true)
	if err != nil {
		t.Fatal(err)
	}
	without, err := numa.Signature(os.DirFS(dir), false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := numa.Signature(os.DirFS(dir), true); again != before || err != nil {
		t.Errorf("it changes by itself, %v", err)
	}
	change := func(what, text string) {
		t.Helper()
		path := filepath.Join(dir, "sys/devices/system", what)
		was := files.Read(t, path)
		files.Write(t, path, text)
		if after, err := numa.Signature(os.DirFS(dir), true); err != nil || after == before {
			t.Errorf("%s changed, and the signature has not: %v", what, err)
		}
		files.Write(t, path, was)
	}
	unplug := func(link string) {
		t.Helper()
		link = filepath.Join(dir, "sys/bus/pci/devices", link)
		target, err := os.Readlink(link)
		if err := errors.Join(err, os.Remove(link)); err != nil {
			t.Fatal(err)
		}
		if after, err := numa.Signature(os.DirFS(dir), true); err != nil || after == before {
			t.Errorf("%s is gone, and the signature has not changed: %v", link, err)
		}
		if after, err := numa.Signature(os.DirFS(dir), false); err != nil || after != without {
			t.Errorf("%s is gone, and the signature without PCI has changed: %v", link, err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	breakDown := func(file, text string, changes bool) {
		t.Helper()
		file = filepath.Join(dir, "sys/bus/pci/devices", file)
		files.Write(t, file, text)
		if after, err := numa.Signature(os.DirFS(dir), true); err != nil || (after != before) != changes {
			t.Errorf("%s is %q, and that the signature has changed is %t: %v", file, text, after != before, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	drive := machine.PCI[0].Address + "/nvme/nvme0" // which it is none of
	breakDown(drive+"/state", "dead\n", true)
	breakDown(drive+"/state", "resetting\n", false)
	breakDown(machine.PCI[0].Address+"/aer_dev_fatal", "TOTAL_ERR_FATAL 1\n", true)
	breakDown(machine.PCI[0].Address+"/aer_rootport_total_err_fatal", "1\n", true)
	breakDown("../../../../"+numa.GPUReportFile, "{}", true)
	unplug(machine.PCI[0].Address + "/driver")
	unplug(machine.PCI[0].Address)
	change("cpu/online", "0-510\n")
	change("node/online", "0\n")
	change("node/node1/meminfo", "Node 1 MemTotal:       1 kB\n")
	change("node/node1/hugepages/hugepages-2048kB/nr_hugepages", "77\n")
	change("node/node1/hugepages/hugepages-2048kB/surplus_hugepages", "7\n")
	for _, name := range watermarkSettings {
		change("../../../"+name, "99\n")
	}
	files.Write(t, filepath.Join(dir, "sys/devices/system/node/online"), "x\n")
	if _, err := numa.Signature(os.DirFS(dir), true); err == nil {
		t.Error("a list that is none gives no error")
	}
}

// A kernel without NUMA has no folders of nodes: its memory is one zone all the same.
func TestHugepagesOfAKernelWithoutNUMA(t *testing.T) {
	dir := sample.Folder(t, "no-numa")
	root := os.DirFS(dir)
	machine, err := numa.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	pools, err := numa.ReadHugepages(root, 0)
	if err != nil || len(pools) != 2 || !reflect.DeepEqual(pools, machine.Zones[0].Hugepages) {
		t.Errorf("pools %+v, %v; want %+v", pools, err, machine.Zones[0].Hugepages)
	}
	before, err := numa.Signature(root, false)
	if err != nil {
		t.Fatal(err)
	}
	followed, err := numa.SignatureFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"proc/meminfo": "MemTotal:       1 kB\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":      "77\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages": "7\n",
	} {
		was := files.Read(t, filepath.Join(dir, name))
		files.Write(t, filepath.Join(dir, name), text)
		if after, err := numa.Signature(root, false); err != nil || after == before || !slices.Contains(followed, name) {
			t.Errorf("%s changed, and the signature has not, or it is none of its files %q: %v", name, followed, err)
		}
		files.Write(t, filepath.Join(dir, name), was)
	}
}

func BenchmarkSignature512CPUs(b *testing.B) {
	root := os.DirFS(sample.Folder(b, largest))
	for b.Loop() {
		if _, err := numa.Signature(root, true); err != nil {
			b.Fatal(err)
		}
	}
}
