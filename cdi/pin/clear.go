package pin

import (
	"errors"
	"fmt"
	"io/fs"
)

// Clear takes back everything that pins have left in the kernel, and removes the cgroups
// that the driver made for itself. If a recorded cgroup still has processes, Clear leaves it
// as it is, and returns its name: then it removes no cgroup. The caller holds the host's
// lock. Clear may be called again.
func Clear(h Host) (live []string, err error) {
	records, err := h.settle(func(record) bool { return true })
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		live = append(live, r.Cgroup)
	}
	if len(live) > 0 {
		return live, nil
	}
	if _, err := h.resetReclaim(); err != nil {
		return nil, err
	}
	if err := h.settleWorkqueues(nil); err != nil {
		return nil, err
	}
	if err := h.Cgroups.Remove(reclaimDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove cgroup %s: %w", reclaimDir, err)
	}
	return nil, removeProbe(h.Cgroups)
}
