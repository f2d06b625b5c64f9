package chart

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// sign is how a claim looks.
type sign struct {
	letter byte
	look   canvas.Look
}

func (s sign) run(cells int) canvas.Run {
	return canvas.Run{Cells: cells, Look: s.look, Sign: s.letter}
}

// letters are those of the first claims of a node; all others have the last sign.
const (
	letters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	lastSign  = '+'
	freeSign  = '.'
	barLength = 32
)

// meet gives the claims of a device their signs.
func (s *scene) meet(device *holdings.Device) {
	for _, share := range device.Shares {
		if share.Admin {
			s.admin = append(s.admin, share.Claim+" ("+device.Name+")")
			continue
		}
		if _, known := s.signs[share.Claim]; known {
			continue
		}
		n := len(s.order)
		next := sign{lastSign, canvas.Hue(n)}
		if n < len(letters) {
			next.letter = letters[n]
		}
		s.signs[share.Claim] = next
		s.order = append(s.order, share.Claim)
	}
}

// strip is a resource of a device by who holds it: CPUs are a cell each, all else
// is a bar. Claims whose CPUs are known come first, by those.
func (s *scene) strip(device *holdings.Device, r holdings.Resource) canvas.Part {
	var parts []part
	for _, share := range byCPU(device.Shares) {
		if amount, held := share.Amounts[r.Name]; held && amount.Sign() > 0 {
			parts = append(parts, part{s.signs[share.Claim], amount})
		}
	}
	total := r.Held
	if r.Total != nil && r.Total.Cmp(r.Held) > 0 {
		total = *r.Total
	}
	if r.Name == "cpu" {
		return cells(parts, total.Value(), total.Value())
	}
	if r.Total == nil {
		return canvas.Stack{}
	}
	return cells(parts, total.Value(), barLength)
}

// part is what a claim holds.
type part struct {
	sign   sign
	amount resource.Quantity
}

// byCPU are the shares in the order of their CPUs, then those of which none are
// known.
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

// cells divides a total over cells, of which there is one or more for what is
// held, and for what is free.
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
		// Rounded up, without an overflow where amounts are bytes.
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
