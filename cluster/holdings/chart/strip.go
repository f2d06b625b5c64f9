package chart

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// sign is the letter and colour of a claim.
type sign struct {
	letter byte
	look   canvas.Look
}

func (s sign) run(cells int) canvas.Run {
	return canvas.Run{Cells: cells, Look: s.look, Sign: s.letter}
}

// letters are for the first claims of a node. All other claims get lastSign.
const (
	letters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	lastSign  = '+'
	freeSign  = '.'
	barLength = 32
)

// Signs are the letters and colours of the claims of a drawing, in the order in which
// their devices are drawn.
type Signs struct {
	of    map[string]sign // by namespace/name of the claim
	order []string
	admin []string // "claim (device)" of claims with admin access
}

// NewSigns returns a value without any signs.
func NewSigns() *Signs { return &Signs{of: make(map[string]sign)} }

// Meet gives the claims of a device their signs. It must be called before the device is
// drawn.
func (s *Signs) Meet(device *holdings.Device) {
	for _, share := range device.Shares {
		if share.Admin {
			s.admin = append(s.admin, share.Claim+" ("+device.Name+")")
			continue
		}
		if _, known := s.of[share.Claim]; known {
			continue
		}
		n := len(s.order)
		next := sign{lastSign, canvas.Hue(n)}
		if n < len(letters) {
			next.letter = letters[n]
		}
		s.of[share.Claim] = next
		s.order = append(s.order, share.Claim)
	}
}

// Claims returns the claims that hold something, in the order of their signs.
func (s *Signs) Claims() []string { return s.order }

// Sample returns the sign of a claim.
func (s *Signs) Sample(claim string) canvas.Strip { return canvas.Strip{s.of[claim].run(1)} }

// mostCPUs is the maximum number of CPUs that are drawn one by one, which is that of Linux.
// A claim whose status a user can write may say that it holds more.
const mostCPUs = 8192

// Strip draws what claims hold of a resource. Each CPU is a cell, and so is each way and
// each member of a cache. Every other resource is a bar. Classes of a cache are not
// drawn, because each claim has one, nor is its bandwidth, which is not summed.
func (s *Signs) Strip(device *holdings.Device, r holdings.Resource) canvas.Strip {
	if device.Cache {
		return s.cacheStrip(device, r)
	}
	if r.Name == string(deviceclasses.CapacityCPU) {
		total := most(r)
		return s.Bar(device, r, min(total.Value(), mostCPUs))
	}
	if r.Total == nil {
		return nil
	}
	return s.Bar(device, r, barLength)
}

func (s *Signs) cacheStrip(device *holdings.Device, r holdings.Resource) canvas.Strip {
	if r.Name != string(deviceclasses.CapacityWays) && r.Name != string(deviceclasses.CapacityMembers) {
		return nil
	}
	total := most(r)
	count := total.Value()
	if count > deviceclasses.MaxWays { // many members, or a status that a user wrote
		count = barLength
	}
	return s.Bar(device, r, count)
}

// most returns the total. If claims hold more than that, or the total is not known, it
// returns what they hold.
func most(r holdings.Resource) resource.Quantity {
	if r.Total != nil && r.Total.Cmp(r.Held) > 0 {
		return *r.Total
	}
	return r.Held
}

// Bar draws what claims hold of a resource in count cells. Claims whose CPUs are known
// come first, in the order of their CPUs.
func (s *Signs) Bar(device *holdings.Device, r holdings.Resource, count int64) canvas.Strip {
	var parts []part
	for _, share := range byCPU(device.Shares) {
		if amount, held := share.Amounts[r.Name]; held && amount.Sign() > 0 {
			parts = append(parts, part{s.of[share.Claim], amount})
		}
	}
	total := most(r)
	return cells(parts, total.Value(), count)
}

// Cell draws a device that a claim holds as a whole, or that is free.
func (s *Signs) Cell(device *holdings.Device) canvas.Run {
	for _, share := range device.Shares {
		if !share.Admin {
			return s.of[share.Claim].run(1)
		}
	}
	if device.State == holdings.StateBlocked {
		return canvas.Run{Cells: 1, Look: canvas.Blocked, Sign: 'x'}
	}
	return canvas.Run{Cells: 1, Look: canvas.Free, Sign: freeSign}
}

// part is an amount that a claim holds.
type part struct {
	sign   sign
	amount resource.Quantity
}

// byCPU sorts the shares by their CPUs. Shares whose CPUs are not known come last.
func byCPU(shares []holdings.Share) []holdings.Share {
	first := func(share holdings.Share) int {
		if share.CPUs != nil {
			if cpu, some := share.CPUs.First(); some {
				return cpu
			}
		}
		return 1 << 30
	}
	return slices.SortedStableFunc(slices.Values(shares), func(a, b holdings.Share) int { return cmp.Compare(first(a), first(b)) })
}

// cells divides a total into count cells. If something is held, it has at least one
// cell, and so does what is free.
func cells(parts []part, total, count int64) canvas.Strip {
	if total <= 0 {
		return nil
	}
	held := int64(0)
	for _, p := range parts {
		held += p.amount.Value()
	}
	most := count
	if held < total && count > 1 {
		most--
	}
	var strip canvas.Strip
	sum, done := int64(0), int64(0)
	for _, p := range parts {
		sum += p.amount.Value()
		// This rounds up. Numbers of bytes do not overflow in floating point.
		end := min(int64(math.Ceil(float64(sum)/float64(total)*float64(count))), most)
		if last := len(strip) - 1; end > done && last >= 0 && strip[last].Sign == p.sign.letter && strip[last].Look == p.sign.look {
			strip[last].Cells += int(end - done)
			done = end
		} else if end > done {
			strip = append(strip, p.sign.run(int(end-done)))
			done = end
		}
	}
	return append(strip, canvas.Run{Cells: int(count - done), Look: canvas.Free, Sign: freeSign})
}
