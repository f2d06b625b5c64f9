package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Pods returns the pods that have a cgroup, by UID, and whether a process is in it or below
// it. It finds them by name anywhere below the mount, because the kubelet's --cgroup-root may
// be any cgroup. A cgroup inside of a pod's is never a pod: a tenant may have made it. Nor is
// one directly below a cgroup of another user than root. Cgroups may come and go while Pods
// reads. If unread is not nil, pods may also be in a cgroup that cannot be read. Pods returns
// an error if cgroup v2 is not mounted there.
func Pods(cgroups fs.FS) (pods map[string]bool, unread, err error) {
	if _, err := fs.Stat(cgroups, "cgroup.controllers"); err != nil {
		return nil, nil, fmt.Errorf("find the cgroups of pods: cgroup v2 is not mounted here: %w", err)
	}
	root, _ := owner(cgroups, ".")
	pods = make(map[string]bool)
	search := podSearch{cgroups, root, func(uid, pod string) {
		populated, _ := isPopulated(cgroups, pod)
		pods[uid] = pods[uid] || populated
	}}
	return pods, search.look("."), nil
}

type podSearch struct {
	cgroups fs.FS
	root    uint32 // the owner of the mount
	found   func(uid, pod string)
}

// look finds the pods below dir, and returns why some may be missing.
func (s podSearch) look(dir string) (unread error) {
	entries, err := fs.ReadDir(s.cgroups, dir)
	if err != nil && s.mayHavePods(dir, err) {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		child := path.Join(dir, entry.Name())
		if uid, isPod := podUID(entry.Name()); isPod && !s.isOfUser(dir) {
			s.found(uid, child)
		} else if err := s.look(child); err != nil {
			unread = err
		}
	}
	return unread
}

// mayHavePods reports whether pods may be below a cgroup that cannot be read. The kubelet makes
// them below cgroups of root, and with names that can be opened. A user or a container that has
// got a cgroup can forbid to read it (chmod 0), or make names that cannot be opened.
func (s podSearch) mayHavePods(dir string, fault error) bool {
	if isGone(fault) && dir != "." || errors.Is(fault, fs.ErrInvalid) || errors.Is(fault, syscall.ENAMETOOLONG) {
		return false
	}
	return !s.isOfUser(dir) && !s.isOfUser(path.Dir(dir))
}

// isOfUser reports whether a cgroup belongs to another user than the mount, which is root's.
func (s podSearch) isOfUser(dir string) bool {
	uid, known := owner(s.cgroups, dir)
	return known && uid != s.root
}

func owner(cgroups fs.FS, dir string) (uid uint32, known bool) {
	info, err := fs.Stat(cgroups, dir)
	if err != nil {
		return 0, false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if known {
		uid = stat.Uid
	}
	return uid, known
}

// CheckPod returns an error if the parent of a container's cgroup is not a pod's. It must not
// become a partition then: other pods and services of the host may be in it.
func CheckPod(container string) error {
	parent := path.Dir(container)
	if _, isPod := podUID(path.Base(parent)); isPod {
		return nil
	}
	return fmt.Errorf("several containers of the pod use the claim at once, but its cgroup cannot get the CPUs: "+
		"%s is not a pod's (cgroupsPerQOS of the kubelet must be true): %w", parent, ErrNotSupported)
}

// InPod reports whether a container is in one of these pods. The container is the path of its
// cgroup, as in [Pin].
func InPod(container string, uids []string) bool {
	uid, isPod := podUID(path.Base(path.Dir(container)))
	return isPod && slices.Contains(uids, uid)
}

// podUID returns the UID of the pod whose cgroup has this name: pod<uid> with the cgroup
// driver cgroupfs, …-pod<uid>.slice with systemd, where the UID has underscores.
func podUID(name string) (uid string, isPod bool) {
	if slice, ok := strings.CutSuffix(name, ".slice"); ok {
		if i := strings.LastIndex(slice, "-pod"); i >= 0 {
			uid, isPod = strings.ReplaceAll(slice[i+len("-pod"):], "_", "-"), true
		}
	} else {
		uid, isPod = strings.CutPrefix(name, "pod")
	}
	// Those of static pods have no dashes. Others are RFC 4122.
	const fewest = 32
	return uid, isPod && len(uid) >= fewest && strings.Trim(uid, "0123456789abcdef-") == ""
}

// Recorded returns the claims that live records name, by UID, each with one of its cgroups.
// A record is live while a process is in its cgroup, or if that cannot be told. Those of other
// builds count, too. A damaged one, which a power failure has left, names no claim.
func Recorded(cgroups, records fs.FS) (map[string]string, error) {
	entries, err := fs.ReadDir(records, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list records: %w", err)
	}
	claims := make(map[string]string)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), recordSuffix) {
			continue
		}
		o, err := readOutline(records, entry)
		if err != nil {
			return nil, fmt.Errorf("read record %q: %w", entry.Name(), err)
		}
		if !fs.ValidPath(o.Cgroup) {
			continue
		}
		populated, _ := isPopulated(cgroups, o.Cgroup)
		for _, claim := range o.Claims {
			if populated && claims[claim.UID] == "" {
				claims[claim.UID] = o.Cgroup
			}
		}
	}
	return claims, nil
}
