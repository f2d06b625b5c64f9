package binding

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// userOf returns what uses a function on the host; "" if nothing is seen. If sysfs or the
// mounts cannot be read, that is an error, because the function may be in use.
func (h *Host) userOf(address string) (user string, err error) {
	access, err := devnode.Read(h.files, address)
	if err == nil {
		user, err = h.userOfDisks(address, access.Nodes)
	}
	if err != nil {
		return "", fmt.Errorf("check whether the host uses it: %w", err)
	}
	if user != "" {
		return user, nil
	}
	for _, name := range access.Interfaces {
		uppers, _ := fs.Glob(h.files, "sys/class/net/"+name+"/upper_*")
		if len(uppers) > 0 {
			return fmt.Sprintf("network interface %s is part of %s", name, strings.TrimPrefix(path.Base(uppers[0]), "upper_")), nil
		}
	}
	if numbers, err := fs.ReadFile(h.files, folder(address)+"/sriov_numvfs"); err == nil && strings.TrimSpace(string(numbers)) != "0" {
		return "it has virtual functions", nil
	}
	return "", nil
}

// userOfDisks returns what uses a disk of the function or one of its partitions.
func (h *Host) userOfDisks(address string, nodes []devnode.Node) (user string, err error) {
	names, err := h.disks(address, nodes)
	if err != nil || len(names) == 0 {
		return "", err
	}
	used, err := h.mounted()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if user := h.userOfDisk(name, used); user != "" {
			return user, nil
		}
	}
	return "", nil
}

// disks returns the block devices whose folder is below that of the function or of one of its
// nodes. A disk may be many levels below its controller. An NVMe disk with several paths is not
// below the function, but has a node of it.
func (h *Host) disks(address string, nodes []devnode.Node) (names []string, err error) {
	const class = "sys/class/block"
	above := []string{address}
	for _, node := range nodes {
		if node.Type == devnode.TypeBlock {
			above = append(above, path.Base(node.Path))
		}
	}
	entries, err := fs.ReadDir(h.files, class)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		target, err := fs.ReadLink(h.files, class+"/"+entry.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a disk may just have gone
			return nil, err
		}
		if slices.ContainsFunc(strings.Split(target, "/"), func(name string) bool { return slices.Contains(above, name) }) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// userOfDisk returns what uses a disk or a partition: another block device, a mounted file
// system, or swap; "" if there is none. Many file systems have a folder in sysfs, in whatever
// mount namespace they are mounted. Used is as mounted returns it.
func (h *Host) userOfDisk(name string, used map[string]bool) string {
	if holders, _ := fs.ReadDir(h.files, "sys/class/block/"+name+"/holders"); len(holders) > 0 {
		return fmt.Sprintf("disk %s is part of %s", name, holders[0].Name())
	}
	number, _ := fs.ReadFile(h.files, "sys/class/block/"+name+"/dev")
	found := used["/dev/"+name] || used[strings.TrimSpace(string(number))]
	for _, pattern := range []string{"sys/fs/*/" + name, "sys/fs/btrfs/*/devices/" + name} {
		folders, _ := fs.Glob(h.files, pattern)
		found = found || len(folders) > 0
	}
	links, _ := fs.Glob(h.files, "sys/fs/bcachefs/*/dev-*/block")
	found = found || slices.ContainsFunc(links, func(link string) bool {
		target, err := fs.ReadLink(h.files, link)
		return err == nil && path.Base(target) == name
	})
	if found {
		return fmt.Sprintf("disk %s has a mounted file system, or swap", name)
	}
	return ""
}

// mounted returns the numbers, as major:minor, and the device nodes of what is mounted in the
// mount namespace of any process, and the device nodes of swap. Not every file system has a
// folder in sysfs: vfat, exfat, ntfs3, iso9660 and udf have none. Without the host's proc,
// nothing is known. Formats: proc_pid_mountinfo(5), proc_swaps(5).
func (h *Host) mounted() (used map[string]bool, err error) {
	used = make(map[string]bool)
	entries, err := fs.ReadDir(h.proc, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return used, nil
	}
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool) // most processes have the mounts of another one
	for _, entry := range entries {
		if entry.Name()[0] < '0' || entry.Name()[0] > '9' {
			continue
		}
		text, err := fs.ReadFile(h.proc, entry.Name()+"/mountinfo")
		if err != nil || seen[string(text)] {
			continue // the process has ended, or has no mounts: a kernel thread that ends
		}
		seen[string(text)] = true
		for line := range strings.Lines(string(text)) {
			before, after, _ := strings.Cut(line, " - ")
			fields, source := strings.Fields(before), strings.Fields(after)
			if len(fields) > 2 && len(source) > 1 {
				used[fields[2]] = true
				for part := range strings.SplitSeq(source[1], ":") { // bcachefs names all of its disks
					used[part] = true
				}
			}
		}
	}
	text, err := fs.ReadFile(h.proc, "swaps")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		used[name] = true
	}
	return used, nil
}
