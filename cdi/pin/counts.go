package pin

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
)

// Counts are what a Keeper has done since it started.
type Counts struct {
	Repairs    map[Cause]uint64 // of cgroups
	Releases   uint64           // of cgroups whose processes had ended
	Unrepaired int              // cgroups that the last look found wrong, and that could not be repaired
}

// Cause is what of a cgroup was not as it should be.
type Cause string

// The causes.
const (
	CausePartition Cause = "partition" // the partition was invalid, or none
	CauseExclusive Cause = "exclusive" // its exclusive CPUs, or those of a cgroup above it
	CauseCPUs      Cause = "cpus"      // its CPUs
	CauseMems      Cause = "mems"      // its NUMA nodes
	CauseOther     Cause = "other"     // it could not be read completely
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{CausePartition, CauseExclusive, CauseCPUs, CauseMems, CauseOther}
}

// differenceError says that a file of a cgroup does not have what it should.
type differenceError struct {
	file string // its base name
	text string
}

func (e *differenceError) Error() string { return e.text }

func differs(file, format string, args ...any) error {
	return &differenceError{file, file + " " + fmt.Sprintf(format, args...)}
}

// causeOf returns what an error of check is about.
func causeOf(err error) Cause {
	var difference *differenceError
	if !errors.As(err, &difference) {
		return CauseOther
	}
	file := strings.TrimSuffix(path.Base(difference.file), ".effective")
	cause, known := map[string]Cause{partitionFile: CausePartition, exclusiveFile: CauseExclusive, cpusFile: CauseCPUs, memsFile: CauseMems}[file]
	if !known {
		return CauseOther
	}
	return cause
}

// repaired counts one repair.
func (c *Counts) repaired(cause error) {
	if c.Repairs == nil {
		c.Repairs = make(map[Cause]uint64)
	}
	c.Repairs[causeOf(cause)]++
}

// Counts returns what the keeper has done so far. Only Also may call it.
func (k *Keeper) Counts() Counts {
	counts := k.counts
	counts.Repairs = maps.Clone(counts.Repairs)
	return counts
}
