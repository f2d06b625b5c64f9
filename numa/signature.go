package numa

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Signature is a text that changes when something that [Read] reports is added, removed
// or fails: CPUs, memory, hugepages and, withPCI, PCI functions. Computing it costs a
// hundredth of reading the machine, so a daemon can do it often. If Read learns to
// report another fact that can change on a running machine, add that fact here, too.
func Signature(root fs.FS, withPCI bool) (string, error) {
	text, err := memorySignature(root)
	if err != nil || !withPCI {
		return text, err
	}
	functions, err := pciSignature(root)
	return text + functions, err
}

// pciSignature describes all PCI functions, including virtual ones: their drivers,
// their faults, and the report on GPUs. An NVMe controller is listed only in the state
// "dead"; a reset does not change the signature.
func pciSignature(root fs.FS) (string, error) {
	entries, err := fs.ReadDir(root, pciFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var text strings.Builder
	for _, entry := range entries {
		// A file that cannot be read is absent, or has just disappeared.
		folder := path.Join(pciFolder, entry.Name())
		driver, _ := fs.ReadLink(root, path.Join(folder, "driver"))
		fatal, _ := fs.ReadFile(root, path.Join(folder, "aer_dev_fatal"))
		received, _ := fs.ReadFile(root, path.Join(folder, "aer_rootport_total_err_fatal"))
		fmt.Fprintf(&text, "%s %s %s %s\n", entry.Name(), path.Base(driver), fatal, received)
		controllers, _ := fs.ReadDir(root, path.Join(folder, "nvme"))
		for _, controller := range controllers {
			if state, _ := fs.ReadFile(root, path.Join(folder, "nvme", controller.Name(), "state")); bytes.HasPrefix(state, []byte("dead")) {
				text.Write(state)
			}
		}
	}
	report, _ := newTree(root).limited(GPUReportFile, gpuReportBytes)
	text.Write(report)
	return text.String(), nil
}

// SignatureFiles returns the files whose first lines are the part of the signature without
// PCI functions. Other NUMA nodes have other files.
func SignatureFiles(root fs.FS) ([]string, error) {
	names := []string{cpuFolder + "/online", nodeFolder + "/online"}
	names = append(names, "proc/sys/vm/min_free_kbytes", "proc/sys/vm/watermark_scale_factor") // of which the watermarks are made
	nodes, err := newTree(root).onlineZones()
	if err != nil {
		return nil, err
	}
	meminfo, pools := nodeFolder+"/node*/meminfo", nodeFolder+"/node*/hugepages"
	if nodes.IsEmpty() {
		meminfo, pools = machineMeminfo, machineHugepages
	}
	for _, pattern := range []string{meminfo, pools + "/*/nr_hugepages", pools + "/*/surplus_hugepages"} {
		found, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

func memorySignature(root fs.FS) (string, error) {
	names, err := SignatureFiles(root)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range names {
		content, err := fs.ReadFile(root, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without NUMA support, or the file has just disappeared
			return "", err
		}
		line, _, _ := bytes.Cut(content, []byte("\n")) // of meminfo, that is MemTotal
		fmt.Fprintf(&text, "%s %s\n", name, line)
	}
	return text.String(), nil
}
