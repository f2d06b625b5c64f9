package kubeletplugin

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
)

const (
	// rivalsFile lists the other drivers that give out CPUs or memory of the node: on
	// each line a name, and then cpus, memory or both.
	rivalsFile = "rivals"
	// rivalsLast is how long a driver without slices and without a socket still counts. A
	// kubelet that starts deletes all slices of its node, and after a boot any driver may
	// be the first. Zones that came back meanwhile would take CPUs from its pods.
	rivalsLast = 2 * time.Minute
)

// rivals knows the other drivers that give out CPUs or memory of the node.
type rivals struct {
	registry string // where drivers have the sockets by which the kubelet finds them
	named    map[string]driver.Rival
	dir      *os.Root // of the file; nil: it is not kept
	now      func() time.Time

	mu    sync.Mutex
	known map[string]rival // by driver
}

type rival struct {
	driver.Rival
	seen    time.Time // when it last had slices or a socket
	present bool      // it has slices
}

// newRivals remembers in dir. The drivers that the configuration names give out CPUs or
// memory, whatever their devices say.
func newRivals(dir *os.Root, registry string, config driver.Config) *rivals {
	r := &rivals{registry: registry, named: make(map[string]driver.Rival), dir: dir, now: time.Now, known: make(map[string]rival)}
	for _, name := range config.CPUDrivers {
		r.named[name] = driver.Rival{CPUs: true}
	}
	for _, name := range config.MemoryDrivers {
		r.named[name] = driver.Rival{CPUs: r.named[name].CPUs, Memory: true}
	}
	if dir == nil {
		return r
	}
	text, err := dir.ReadFile(rivalsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		klog.Background().Error(err, "Drivers that gave out CPUs or memory before may be overlooked until they publish")
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		has := func(word string) bool { return slices.Contains(strings.Fields(rest), word) }
		what := driver.Rival{CPUs: has("cpus"), Memory: has("memory")}
		if what != (driver.Rival{}) && len(content.IsDNS1123Subdomain(name)) == 0 {
			r.known[name] = rival{Rival: what, seen: r.now()}
		}
	}
	return r
}

// look takes all slices of the node. It returns the first driver that gives out CPUs, ""
// if there is none, and whether it has slices now. memory are the drivers that give out
// memory.
func (r *rivals) look(all []*resourceapi.ResourceSlice) (cpus string, present bool, memory []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	published := make(map[string]driver.Rival)
	for _, slice := range all {
		what, named := driver.RivalOf(slice), driver.Rival{}
		if len(slice.Spec.Devices) > 0 {
			named = r.named[slice.Spec.Driver]
		}
		before := published[slice.Spec.Driver]
		published[slice.Spec.Driver] = driver.Rival{
			CPUs: before.CPUs || what.CPUs || named.CPUs, Memory: before.Memory || what.Memory || named.Memory,
		}
	}
	r.update(published)
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		known := r.known[name]
		if known.CPUs && (cpus == "" || known.present && !present) {
			cpus, present = name, known.present
		}
		if known.Memory {
			memory = append(memory, name)
		}
	}
	return cpus, present, memory
}

// update remembers the drivers that are published, and forgets those that are gone.
func (r *rivals) update(published map[string]driver.Rival) {
	changed, now := false, r.now()
	for name, what := range published {
		if what != (driver.Rival{}) {
			changed = changed || r.known[name].Rival != what
			r.known[name] = rival{what, now, true}
		}
	}
	for name, known := range r.known {
		if what, has := published[name]; has && what != (driver.Rival{}) {
			continue
		}
		known.present = false
		if r.registered(name) {
			known.seen = now
		}
		r.known[name] = known
		if now.Sub(known.seen) >= rivalsLast {
			delete(r.known, name)
			changed = true
		}
	}
	if changed && r.dir != nil {
		if err := durable.Replace(r.dir, rivalsFile, r.text(), 0o644); err != nil {
			klog.Background().Error(err, "Drivers that give out CPUs or memory may be overlooked after a restart")
		}
	}
}

// registered reports whether the driver has a socket where the kubelet looks for plugins.
// The kubelet's helper names it after the driver, with a unique part while it is updated.
func (r *rivals) registered(name string) bool {
	entries, err := os.ReadDir(r.registry)
	return err == nil && slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		owner, isSocket := strings.CutSuffix(entry.Name(), "-reg.sock")
		return isSocket && (owner == name || strings.HasPrefix(owner, name+"-"))
	})
}

func (r *rivals) text() []byte {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		text.WriteString(name)
		if r.known[name].CPUs {
			text.WriteString(" cpus")
		}
		if r.known[name].Memory {
			text.WriteString(" memory")
		}
		text.WriteByte('\n')
	}
	return text.Bytes()
}
