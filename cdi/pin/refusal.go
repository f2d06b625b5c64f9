package pin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Refusal is why a hook did not let a container start. Not every OCI runtime reports what
// a failed hook says, so the hook also leaves it in the folder of the records.
type Refusal struct {
	Claim     ClaimRef  `json:"claim"`
	Container string    `json:"container"` // its id
	At        time.Time `json:"at"`
	Why       string    `json:"why"` // one line
}

const (
	refusalSuffix = ".refused"
	// refusalLasts is how long a refusal is kept. A container that does not start is
	// created again after at most five minutes.
	refusalLasts = 10 * time.Minute
	// maxRefusals and refusalBytes bound what failing containers can take of the disk.
	maxRefusals  = 64
	refusalBytes = 4 << 10
)

// LeaveRefusal writes a refusal, and removes old ones. A second refusal of the same
// container and claim replaces the first. If there are too many, the oldest make room.
func LeaveRefusal(records *os.Root, r Refusal) error {
	r.Why = strings.ToValidUTF8(r.Why[:min(len(r.Why), refusalBytes/2)], "")
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// The id comes from the runtime: it becomes no part of a path.
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, r.Container+" "+r.Claim.UID)
	name := fmt.Sprintf("%016x", sum.Sum64()) + refusalSuffix
	if err := pruneRefusals(records, r.At, name); err != nil {
		return err
	}
	return Replace(records, name, data)
}

// pruneRefusals removes old refusals, and the oldest ones if there is no room for one with this
// name.
func pruneRefusals(records *os.Root, now time.Time, name string) error {
	entries, err := fs.ReadDir(records.FS(), ".")
	if err != nil {
		return err
	}
	ages := make(map[string]time.Duration)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), refusalSuffix) || entry.Name() == name {
			continue
		}
		ages[entry.Name()] = refusalLasts
		if info, err := entry.Info(); err == nil {
			ages[entry.Name()] = now.Sub(info.ModTime()).Abs()
		}
	}
	youngest := slices.SortedFunc(maps.Keys(ages), func(a, b string) int { return cmp.Compare(ages[a], ages[b]) })
	for i, old := range youngest {
		if i < maxRefusals-1 && ages[old] < refusalLasts {
			continue
		}
		if err := records.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Refusals returns the refusals of the last minutes, in no particular order. It skips
// files that are not valid. A missing folder has none.
func Refusals(records fs.FS, now time.Time) (list []Refusal, err error) {
	entries, err := fs.ReadDir(records, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), refusalSuffix) || !entry.Type().IsRegular() {
			continue
		}
		file, err := records.Open(entry.Name())
		if err != nil {
			continue // removed meanwhile
		}
		var r Refusal
		err = json.NewDecoder(io.LimitReader(file, refusalBytes)).Decode(&r)
		_ = file.Close() // opened for reading
		if err == nil && now.Sub(r.At).Abs() < refusalLasts {
			list = append(list, r)
		}
	}
	return list, err
}
