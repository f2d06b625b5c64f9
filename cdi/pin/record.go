package pin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Scope says whose cgroup becomes the partition for a share of a claim.
type Scope string

const (
	// ScopeContainer is the cgroup of the container. At most one container uses the
	// share at a time.
	ScopeContainer Scope = "container"
	// ScopePod is the parent of the container's cgroup. Every container that can
	// run at the same time as a user of the share also uses the share.
	ScopePod Scope = "pod"
)

// ParseScope reads container or pod.
func ParseScope(name string) (Scope, error) {
	switch scope := Scope(name); scope {
	case ScopeContainer, ScopePod:
		return scope, nil
	}
	return "", fmt.Errorf("scope %q: want one of container, pod", name)
}

// ClaimRef names a claim: its UID and its namespace/name.
type ClaimRef struct {
	UID  string `json:"uid"`
	Name string `json:"name"`
}

// Claim is what one claim gives a cgroup. An empty Pinning gives nothing: a container uses
// the claim, and its cgroup stays as it is.
type Claim struct {
	ClaimRef
	Pinning
	// Later says that a pod has come to the claim after [ScopePod] was decided. Containers
	// without the claim may run in it, so its cgroup becomes no partition.
	Later bool `json:"later,omitempty"`
	// LiftQuota says that the CPU quota of a container may be lifted if its CPUs fit in it, and
	// then that of its pod if it is no less than PodLimit.
	LiftQuota bool `json:"liftQuota,omitempty"`
	// PodLimit is what the limits of the pod's containers add up to, in thousandths of a CPU;
	// 0: not each container has one, or it is not known.
	PodLimit int64 `json:"podLimit,omitempty"`

	Policy PolicyFault `json:"policy,omitzero"` // of the container; empty if it has the claim's memory policy, or if there is none
}

// record is what hooks were told to give one cgroup. A hook writes it before it first
// writes to the kernel, so that everything a killed hook left has an owner.
type record struct {
	// Boot is the id of the boot in which the record was written. A pod's cgroup has
	// the same path after a reboot, but its claims may have other CPUs.
	Boot   string  `json:"boot"`
	Cgroup string  `json:"cgroup"` // its path below the mount
	Scope  Scope   `json:"scope"`
	Claims []Claim `json:"claims"` // ascending by UID, each once

	// Quota is the CPU quota of the container before the first hook lifted it; empty: none
	Quota string `json:"quota,omitempty"`
	// Inner says that the runtime had made innerCgroup before the container started. One that
	// came later is the container's own.
	Inner bool `json:"inner,omitempty"`
}

const (
	recordSuffix = ".json"

	// recordFormat and recordVersion are what a record's file says of itself. From v0.1.0 on,
	// only a release raises the version. Until then it stays 1, and fields may be added. An
	// empty field is left out.
	recordFormat  = "dra.numa/pins"
	recordVersion = 1
)

// recordFile is the content of a record's file.
type recordFile struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	record
}

// errOtherBuild is why a record is passed over that is intact, but has a format or a field
// that this build does not know.
var errOtherBuild = errors.New("written by another build of numa-pin: drain the node and delete the file")

// file is the name of the record's file.
func (r record) file() string { return path.Base(r.Cgroup) + recordSuffix }

// pod returns the cgroup of the pod, which is the record's cgroup or its parent.
func (r record) pod() string {
	if r.Scope == ScopePod {
		return r.Cgroup
	}
	return path.Dir(r.Cgroup)
}

// with returns the record with a claim added, or united with what the claim already
// gives: a claim may give a container several devices, each with its own hook.
func (r record) with(claim Claim) record {
	i, found := slices.BinarySearchFunc(r.Claims, claim.UID, func(c Claim, uid string) int { return cmp.Compare(c.UID, uid) })
	if !found {
		r.Claims = slices.Insert(slices.Clone(r.Claims), i, claim)
		return r
	}
	r.Claims = slices.Clone(r.Claims)
	r.Claims[i].Pinning = r.Claims[i].united(claim.Pinning)
	// The claim may have been prepared again since.
	r.Claims[i].Later, r.Claims[i].LiftQuota, r.Claims[i].PodLimit = claim.Later, claim.LiftQuota, claim.PodLimit
	return r
}

// wish is what all claims of the record give together.
func (r record) wish() (all Pinning) {
	for _, claim := range r.Claims {
		all = all.united(claim.Pinning)
	}
	return all
}

// pins reports whether the record gives its cgroup anything.
func (r record) pins() bool {
	all := r.wish()
	return !all.CPUs.IsEmpty() || !all.Mems.IsEmpty()
}

// names returns the names of the claims, for log messages.
func (r record) names() string {
	var names []string
	for _, claim := range r.Claims {
		names = append(names, claim.Name)
	}
	return strings.Join(names, ", ")
}

func (r record) validate() error {
	if !fs.ValidPath(r.Cgroup) || r.Cgroup == "." {
		return fmt.Errorf("cgroup %q: want a path below the cgroup mount", r.Cgroup)
	}
	if _, err := ParseScope(string(r.Scope)); err != nil {
		return err
	}
	if len(r.Claims) == 0 {
		return fmt.Errorf("no claims")
	}
	for i, claim := range r.Claims {
		switch {
		case i > 0 && r.Claims[i-1].UID >= claim.UID:
			return fmt.Errorf("claim %q after claim %q: want ascending uids", claim.UID, r.Claims[i-1].UID)
		case claim.CPUs.IsEmpty() && claim.Partition != PartitionNone:
			return fmt.Errorf("claim %q: partition %s without cpus", claim.UID, claim.Partition)
		}
	}
	if r.Quota != "" {
		if _, err := parseQuota(r.Quota); err != nil {
			return fmt.Errorf("quota %w", err)
		}
	}
	return nil
}

func (r record) render() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(recordFile{recordFormat, recordVersion, r})
	return append(data, '\n'), err
}

// parseRecord accepts what render writes, and nothing else.
func parseRecord(data []byte) (record, error) {
	var file recordFile
	if err := json.Unmarshal(data, &file); err != nil {
		return record{}, err
	}
	if file.Format != recordFormat || file.Version != recordVersion {
		return record{}, errOtherBuild
	}
	again, err := file.render()
	if err != nil {
		return record{}, err
	}
	if !bytes.Equal(again, data) {
		return record{}, errOtherBuild
	}
	return file.record, nil
}
