package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Pods returns the pods that have a cgroup, by UID, and whether a process is in it or below
// it. It finds them by name anywhere below the mount, because the kubelet's --cgroup-root may
// be any cgroup. A cgroup inside of a pod's is never a pod: a tenant may have made it. Cgroups
// may come and go while Pods reads. It returns an error if cgroup v2 is not mounted there.
func Pods(cgroups fs.FS) (map[string]bool, error) {
	if _, err := fs.Stat(cgroups, "cgroup.controllers"); err != nil {
		return nil, fmt.Errorf("find the cgroups of pods: cgroup v2 is not mounted here: %w", err)
	}
	pods := make(map[string]bool)
	if err := addPods(pods, cgroups, "."); err != nil {
		return nil, fmt.Errorf("find the cgroups of pods: %w", err)
	}
	return pods, nil
}

func addPods(pods map[string]bool, cgroups fs.FS, dir string) error {
	entries, err := fs.ReadDir(cgroups, dir)
	if isGone(err) && dir != "." {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		child := path.Join(dir, entry.Name())
		uid, isPod := podUID(entry.Name())
		if !isPod {
			err = addPods(pods, cgroups, child)
		} else {
			var populated bool
			populated, err = isPopulated(cgroups, child)
			pods[uid] = pods[uid] || populated
		}
		if err != nil {
			return err
		}
	}
	return nil
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
// A record is live while a process is in its cgroup. Records that cannot be read are in the
// error; the map has the others.
func Recorded(cgroups, records fs.FS) (map[string]string, error) {
	list, faults, err := loadRecords(records)
	if err != nil {
		return nil, err
	}
	claims := make(map[string]string)
	for _, r := range list {
		populated, err := isPopulated(cgroups, r.Cgroup)
		if err != nil {
			faults = append(faults, err)
		}
		for _, claim := range r.Claims {
			if populated && claims[claim.UID] == "" {
				claims[claim.UID] = r.Cgroup
			}
		}
	}
	return claims, errors.Join(faults...)
}
