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
	// rivalsFile lists the other drivers that give out what this one would: on each line a
	// name, and then cpus, memory, and functionWord with the address of a PCI function.
	rivalsFile   = "rivals"
	functionWord = "pci="
	// rivalsLast is how long a driver without slices and without a socket still counts. A
	// kubelet that starts deletes all slices of its node, and after a boot any driver may
	// be the first. What came back meanwhile would be taken from its pods.
	rivalsLast = 2 * time.Minute
)

// rivals knows the other drivers that give out CPUs, memory or PCI functions of the node.
type rivals struct {
	nodeName string
	registry string // where drivers have the sockets by which the kubelet finds them
	named    map[string]driver.Rival
	dir      *os.Root // of the file; nil: it is not kept
	now      func() time.Time

	mu    sync.Mutex
	known map[string]rival // by driver
}

type rival struct {
	offer
	seen    time.Time // when it last had slices or a socket
	present bool      // it has slices with CPUs, memory or PCI functions
}

// offer is what a driver gives out of the node.
type offer struct {
	driver.Rival
	functions []string // PCI addresses, ascending
}

func (o offer) isNothing() bool { return o.Rival == (driver.Rival{}) && len(o.functions) == 0 }

func (o offer) equal(other offer) bool {
	return o.Rival == other.Rival && slices.Equal(o.functions, other.functions)
}

// rivalry is what other drivers give out of the node.
type rivalry struct {
	cpus      string            // the first driver that gives out CPUs; "" if there is none
	present   bool              // it has slices now
	memory    []string          // the drivers that give out memory
	functions map[string]string // by PCI address, the driver that gives it out
}

// newRivals remembers in dir. The drivers that the configuration names give out CPUs or
// memory, whatever their devices say.
func newRivals(dir *os.Root, registry string, config driver.Config) *rivals {
	r := &rivals{nodeName: config.NodeName, registry: registry, named: make(map[string]driver.Rival), dir: dir, now: time.Now, known: make(map[string]rival)}
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
		klog.Background().Error(err, "Drivers that gave out CPUs, memory or PCI functions before may be overlooked until they publish")
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		var what offer
		for _, word := range strings.Fields(rest) {
			address, isFunction := strings.CutPrefix(word, functionWord)
			switch {
			case word == "cpus":
				what.CPUs = true
			case word == "memory":
				what.Memory = true
			case isFunction:
				what.functions = append(what.functions, address)
			}
		}
		if !what.isNothing() && len(content.IsDNS1123Subdomain(name)) == 0 {
			r.known[name] = rival{offer: what, seen: r.now()}
		}
	}
	return r
}

// look takes all slices of the node.
func (r *rivals) look(all []*resourceapi.ResourceSlice) (found rivalry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	published := make(map[string]offer)
	for _, slice := range all {
		what, named := driver.RivalOf(slice), driver.Rival{}
		if len(slice.Spec.Devices) > 0 {
			named = r.named[slice.Spec.Driver]
		}
		before := published[slice.Spec.Driver]
		functions := append(before.functions, driver.AddressesOf(r.nodeName, slice)...)
		slices.Sort(functions)
		published[slice.Spec.Driver] = offer{driver.Rival{
			CPUs: before.CPUs || what.CPUs || named.CPUs, Memory: before.Memory || what.Memory || named.Memory,
		}, slices.Compact(functions)}
	}
	r.update(published)
	found.functions = make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		known := r.known[name]
		if known.CPUs && (found.cpus == "" || known.present && !found.present) {
			found.cpus, found.present = name, known.present
		}
		if known.Memory {
			found.memory = append(found.memory, name)
		}
		for _, address := range known.functions {
			found.functions[address] = name
		}
	}
	return found
}

// update remembers the drivers that are published, and forgets those that are gone.
func (r *rivals) update(published map[string]offer) {
	changed, now := false, r.now()
	for name, what := range published {
		if !what.isNothing() {
			changed = changed || !r.known[name].equal(what)
			r.known[name] = rival{what, now, true}
		}
	}
	for name, known := range r.known {
		what, has := published[name]
		if has && !what.isNothing() {
			continue
		}
		known.present = false
		if has && len(known.functions) > 0 { // what its slices lack now, it has given up
			known.functions, changed = nil, true
		}
		if r.registered(name) {
			known.seen = now
		}
		r.known[name] = known
		if now.Sub(known.seen) >= rivalsLast || known.isNothing() {
			delete(r.known, name)
			changed = true
		}
	}
	if changed && r.dir != nil {
		if err := durable.Replace(r.dir, rivalsFile, r.text(), 0o644); err != nil {
			klog.Background().Error(err, "Drivers that give out CPUs, memory or PCI functions may be overlooked after a restart")
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
		for _, address := range r.known[name].functions {
			text.WriteString(" " + functionWord + address)
		}
		text.WriteByte('\n')
	}
	return text.Bytes()
}
