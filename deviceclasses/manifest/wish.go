// Package manifest writes classes, claims and claim templates for zones from what a
// user wants. The API server, the rules of package lint and the scheduler accept them.
// It knows no cluster: only the scheduler knows whether a node has enough.
package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Values of Wish.Same.
const (
	SameNode   = "node"   // NUMA node
	SameSocket = "socket" // only for devices of this driver: others do not publish the socket
)

// Values of Wish.Places.
const (
	OneNode   = "one-node"   // all of it on one NUMA node, and the devices too
	OneSocket = "one-socket" // equal parts on NUMA nodes of one socket, and the devices on that socket
	Anywhere  = "any"        // equal parts on any NUMA nodes, wherever the devices are
)

// Wish is what a claim should hold.
type Wish struct {
	// Class is the class of the zones.
	Class string
	// CPUs and Memory are per share; 0 means none.
	CPUs   int64
	Memory resource.Quantity
	// Hugepages are amounts by page size, such as 2Mi; they must be whole pages.
	Hugepages map[string]resource.Quantity
	// Shares is the number of shares; each is a request of its own. It is 1 or more.
	Shares int
	// Cache is the part that each share has of its level-3 cache; nil for none.
	Cache *Cache
	// Devices are requests for whole devices of other classes.
	Devices []Devices
	// Paired puts one device of each class under one PCIe root, on the NUMA node of a share.
	Paired bool
	// Same is what all shares and devices have in common: "", SameNode or SameSocket.
	Same string
	// Apart puts every share on another NUMA node.
	Apart bool
	// Places are the alternatives in their order: none, or OneNode followed by others.
	Places []string
	// Parts is the number of NUMA nodes that give equal parts in an alternative. It is 2 or
	// more, and with devices 1 or more.
	Parts int
	// Config is how zones and caches are used, and how fast and undisturbed the CPUs are.
	Config deviceclasses.RequestConfig
	Filter Filter
}

// Devices are whole devices of a class.
type Devices struct {
	Class string
	Count int64 // 1 or more
	// Near is the attribute that devices of a pair have in common with a zone on their NUMA
	// node; "" for none.
	Near resourceapi.FullyQualifiedName
}

// HasShares reports whether the wish has shares of zones, and not only devices.
func (w Wish) HasShares() bool { return w.CPUs > 0 || w.Memory.Sign() > 0 || len(w.Hugepages) > 0 }

// Check refuses contradictions.
func (w Wish) Check() error {
	zones := w.HasShares()
	switch {
	case w.CPUs < 0 || w.Memory.Sign() < 0:
		return errors.New("an amount is below 0")
	case !zones && len(w.Devices) == 0 && w.Cache == nil:
		return errors.New("nothing is requested: want cpus, memory, hugepages or devices")
	case !zones && (isSet(w.Config) || !w.Filter.IsEmpty() || w.Shares > 1 || w.Apart || len(w.Places) > 0):
		return errors.New("there is no share of a NUMA node: want cpus, memory or hugepages as well")
	case w.Shares < 1:
		return fmt.Errorf("%d shares: want 1 or more", w.Shares)
	case w.Apart && w.Shares == 1:
		return errors.New("a single share cannot be apart: want 2 shares or more")
	case w.Apart && w.Same == SameNode:
		return errors.New("shares cannot be apart and on the same NUMA node: want one of the two")
	case w.Same != "" && !slices.Contains([]string{SameNode, SameSocket}, w.Same):
		return fmt.Errorf("same %q, allowed are %s, %s", w.Same, SameNode, SameSocket)
	case w.Same != "" && w.devices(zones) < 2:
		return fmt.Errorf("a single share or device is always on the same %s: want 2 or more", w.Same)
	}
	if err := w.checkAmounts(); err != nil {
		return err // the checks of places need sizes that are valid
	}
	return cmp.Or(w.checkPairs(), w.checkL3(), w.checkPlaces(), w.checkConfig(), w.Cache.check(w), w.Filter.check())
}

// devices counts the shares and devices of the claim.
func (w Wish) devices(zones bool) (count int) {
	if zones {
		count += w.Shares
	}
	for _, devices := range w.Devices {
		count += int(devices.Count)
	}
	return count
}

func (w Wish) checkAmounts() error {
	for _, size := range sortedKeys(w.Hugepages) {
		page, err := resource.ParseQuantity(size)
		if err != nil || page.Sign() <= 0 || page.String() != size {
			return fmt.Errorf("hugepages of %q: want a size such as 2Mi or 1Gi", size)
		}
		amount := w.Hugepages[size]
		if amount.Sign() <= 0 || amount.Value()%page.Value() != 0 {
			return fmt.Errorf("%s of hugepages of %s: want whole pages", amount.String(), size)
		}
	}
	for _, devices := range w.Devices {
		if devices.Class == "" || devices.Count < 1 {
			return fmt.Errorf("%d devices of class %q: want 1 or more of a class", devices.Count, devices.Class)
		}
	}
	return nil
}

// checkPlaces refuses alternatives in another order, and amounts that cannot be divided.
func (w Wish) checkPlaces() error {
	if len(w.Places) == 0 {
		return nil
	}
	order := []string{OneNode, OneSocket, Anywhere}
	for i, place := range w.Places {
		known := slices.Index(order, place)
		if known < 0 || i == 0 && known > 0 || i > 0 && known <= slices.Index(order, w.Places[i-1]) || len(w.Places) == 1 {
			return fmt.Errorf("alternatives %q: want %s and then one or both of %s, %s", strings.Join(w.Places, ","), OneNode, OneSocket, Anywhere)
		}
	}
	if w.Shares > 1 || w.Same != "" {
		return errors.New("alternatives are only for a single share: want no other shares, and nothing on the same node or socket")
	}
	least := 2
	if len(w.Devices) > 0 {
		least = 1
	}
	if w.Parts < least {
		return fmt.Errorf("%d parts: want %d or more", w.Parts, least)
	}
	caches := 0 // requests and constraints for a cache
	if w.Cache != nil {
		caches = 1
	}
	most := resourceapi.DeviceRequestsMaxSize - 1 - caches // one request is the share
	if slices.Contains(w.Places, OneSocket) {
		most = min(most, (resourceapi.DeviceConstraintsMaxSize-caches)/2)
	}
	if count := w.devices(false); count > most {
		return fmt.Errorf("%d devices with these alternatives: want %d or fewer", count, most)
	}
	_, err := w.part()
	return err
}

// part is what each NUMA node gives in an alternative with several NUMA nodes.
func (w Wish) part() (Wish, error) {
	parts := int64(w.Parts)
	divide := func(what string, amount, unit int64) (int64, error) {
		if amount%(parts*unit) != 0 {
			return 0, fmt.Errorf("%s cannot be divided into %d equal parts", what, parts)
		}
		return amount / parts, nil
	}
	var err error
	if w.CPUs, err = divide(fmt.Sprintf("%d CPUs", w.CPUs), w.CPUs, 1); err != nil {
		return w, err
	}
	memory, err := divide(w.Memory.String()+" of memory", w.Memory.Value(), 1)
	if err != nil {
		return w, err
	}
	w.Memory = *resource.NewQuantity(memory, w.Memory.Format)
	pages := make(map[string]resource.Quantity)
	for size, amount := range w.Hugepages {
		page := resource.MustParse(size)
		bytes, err := divide(fmt.Sprintf("%s of hugepages of %s", amount.String(), size), amount.Value(), page.Value())
		if err != nil {
			return w, err
		}
		pages[size] = *resource.NewQuantity(bytes, amount.Format)
	}
	w.Hugepages = pages
	return w, nil
}
