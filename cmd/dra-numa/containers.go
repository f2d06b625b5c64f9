package main

import (
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// containers looks which containers run on this host.
func (o *options) containers() (driver.Containers, error) {
	return readContainers(kernelfs.Dir(o.cgroupRoot), os.DirFS(o.hook().RecordsDir()), types.UID(o.podUID))
}

// readContainers finds the cgroups of pods by their names. If it finds that of the pod own in
// this way, and can read all cgroups that may have pods, it finds all.
func readContainers(cgroups, records fs.FS, own types.UID) (driver.Containers, error) {
	found, unread, err := pin.Pods(cgroups)
	if err != nil {
		return driver.Containers{}, err
	}
	seen := driver.Containers{Pods: make(map[types.UID]bool, len(found)), Recorded: make(map[types.UID]string)}
	for uid, populated := range found {
		seen.Pods[types.UID(uid)] = populated
	}
	seen.AllPods = seen.Pods[own] && unread == nil
	if unread != nil {
		seen.Unseen = "cgroups cannot be read: " + unread.Error()
	}
	recorded, err := pin.Recorded(cgroups, records)
	if err != nil {
		return driver.Containers{}, err
	}
	for uid, cgroup := range recorded {
		seen.Recorded[types.UID(uid)] = cgroup
	}
	return seen, nil
}
