package pin

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
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
// container and claim replaces the first.
func LeaveRefusal(records *os.Root, r Refusal) error {
	r.Why = strings.ToValidUTF8(r.Why[:min(len(r.Why), refusalBytes/2)], "")
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	left, err := pruneRefusals(records, r.At)
	if err != nil {
		return err
	}
	if left >= maxRefusals {
		return fmt.Errorf("leave refusal: there are %d already", left)
	}
	// The id comes from the runtime: it becomes no part of a path.
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, r.Container+" "+r.Claim.UID)
	return Replace(records, fmt.Sprintf("%016x", sum.Sum64())+refusalSuffix, data)
}

// pruneRefusals removes old refusals and returns how many are left.
func pruneRefusals(records *os.Root, now time.Time) (left int, err error) {
	entries, err := fs.ReadDir(records.FS(), ".")
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), refusalSuffix) {
			continue
		}
		info, err := entry.Info()
		if err == nil && now.Sub(info.ModTime()).Abs() < refusalLasts {
			left++
			continue
		}
		if err := records.Remove(entry.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return left, err
		}
	}
	return left, err
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
