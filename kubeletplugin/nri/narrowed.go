package nri

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// narrowedFile lists the containers that the driver has restricted to a pool: their IDs,
// one on each line. It makes a later daemon widen them again.
const narrowedFile = "narrowed"

// narrowed is the set of containers without a claim's CPUs that the driver has restricted
// to a pool. A container stays in it until it ends, because it keeps a cpuset of its own:
// it follows the pool, also while no claim needs a restriction.
type narrowed struct {
	dir     *os.Root      // nil: the set is not kept in a file
	changed chan struct{} // has room for one: the file is to be written

	mu  sync.Mutex // never held while the file is written: the runtime waits two seconds for a handler
	ids map[string]bool

	file    sync.Mutex      // held while the file is written
	written map[string]bool // what the file has
}

// loadNarrowed reads the set. A file that cannot be read counts as empty: its containers
// then keep the cpuset that they have.
func loadNarrowed(dir *os.Root) *narrowed {
	n := &narrowed{dir: dir, changed: make(chan struct{}, 1), ids: make(map[string]bool), written: make(map[string]bool)}
	if dir == nil {
		return n
	}
	text, err := dir.ReadFile(narrowedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		klog.Background().Error(err, "Containers that were restricted before may stay restricted")
	}
	for _, id := range strings.Fields(string(text)) {
		n.ids[id] = true
	}
	n.written = maps.Clone(n.ids)
	return n
}

func (n *narrowed) has(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ids[id]
}

// add adds containers. Call it before they are restricted.
func (n *narrowed) add(ids ...string) {
	n.change(func(set map[string]bool) {
		for _, id := range ids {
			set[id] = true
		}
	})
}

// retain removes all containers but these.
func (n *narrowed) retain(ids map[string]*container) {
	n.change(func(set map[string]bool) {
		maps.DeleteFunc(set, func(id string, _ bool) bool { return ids[id] == nil })
	})
}

// remove removes a container that has ended.
func (n *narrowed) remove(id string) {
	n.change(func(set map[string]bool) { delete(set, id) })
}

func (n *narrowed) change(do func(set map[string]bool)) {
	n.mu.Lock()
	do(n.ids)
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// keep writes the file after each change, until ctx ends.
func (n *narrowed) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			n.save()
			return
		case <-n.changed:
			n.save()
		}
	}
}

// save writes the file if the set has changed. The file is not synced to disk: after a power
// failure, none of its containers exists. Without the file, containers are restricted all
// the same, because claims need it.
func (n *narrowed) save() {
	if n.dir == nil {
		return
	}
	n.file.Lock()
	defer n.file.Unlock()
	n.mu.Lock()
	ids := maps.Clone(n.ids)
	n.mu.Unlock()
	if maps.Equal(ids, n.written) {
		return
	}
	text := strings.Join(slices.Sorted(maps.Keys(ids)), "\n") + "\n"
	err := n.dir.WriteFile(narrowedFile+".new", []byte(text), 0o644)
	if err == nil {
		err = n.dir.Rename(narrowedFile+".new", narrowedFile)
	}
	if err != nil {
		klog.Background().Error(err, "Containers that are restricted now may stay so after a restart of the daemon")
		return
	}
	n.written = ids
}
