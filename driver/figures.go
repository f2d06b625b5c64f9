package driver

import (
	"slices"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
)

// Figures are what the zones of the node have and what claims hold of it, in numbers.
type Figures struct {
	Zones   []ZoneFigures // in the order of zones.Of
	Waiting int           // grants that no claim needs and that cannot be released yet
}

// ZoneFigures are the numbers of one zone.
type ZoneFigures struct {
	Device string
	CPUs   Amounts
	Memory []MemoryFigures // memory without hugepages, and then each size of hugepages; empty for a zone of CPUs only
}

// MemoryFigures are the bytes of memory without hugepages, or of hugepages of one size.
type MemoryFigures struct {
	Size string // as in "2Mi"; empty for memory without hugepages
	Amounts
}

// Amounts divides CPUs or bytes by what they are for. For CPUs, and for bytes unless the
// zone has lost memory that claims hold, the sum is what the zone has online.
type Amounts struct {
	Claimed  uint64 // held by claims
	Shared   uint64 // free for claims; until then, containers without claims use them
	Reserved uint64 // not for claims
	Blocked  uint64 // held by partitions of no claim; CPUs only
}

// Figures returns the numbers as they are now. It does not wait for the operation that
// changes the Driver now.
func (d *Driver) Figures() Figures {
	seen := d.shown.Load()
	list := zones.Of(seen.machine, d.config.ZoneBy)
	figures := Figures{Zones: make([]ZoneFigures, len(list)), Waiting: seen.orphans}
	claimed := seen.machine.Online.Difference(ledger.Untaken(seen.machine.Online, seen.grants))
	blocked := d.Blocked()
	for i, zone := range list {
		excluded, reserved := slices.Contains(d.config.ExcludedZones, zone.Device), d.config.Reserved
		if excluded {
			reserved = zone.CPUs
		}
		own := zone.CPUs.Intersection(claimed)
		rest := zone.CPUs.Difference(own)
		free := rest.Difference(blocked)
		figures.Zones[i] = ZoneFigures{Device: zone.Device, CPUs: Amounts{
			Claimed:  uint64(own.Size()),
			Blocked:  uint64(rest.Intersection(blocked).Size()),
			Reserved: uint64(free.Intersection(reserved).Size()),
			Shared:   uint64(free.Difference(reserved).Size()),
		}}
		for _, amount := range zone.Amounts(seen.machine, d.config.ReservedMemory) {
			if excluded {
				amount.ReservedBytes = amount.TotalBytes
			}
			held := seen.grants.Bytes(zone, list, amount.Size())
			figures.Zones[i].Memory = append(figures.Zones[i].Memory, MemoryFigures{amount.Size(), Amounts{
				Claimed: held, Reserved: amount.ReservedBytes,
				Shared: amount.TotalBytes - amount.ReservedBytes - min(held, amount.TotalBytes-amount.ReservedBytes),
			}})
		}
	}
	return figures
}

// Writes are what the Driver has written to one kind of files.
type Writes struct {
	Syncs histogram.Distribution // how long each fsync took
	Bytes uint64
}

// CheckpointWrites returns what was written to the checkpoint so far.
func (d *Driver) CheckpointWrites() Writes {
	return Writes{d.records.files.Syncs(), d.records.files.Bytes()}
}

// SpecWrites returns what was written to CDI specs so far.
func (d *Driver) SpecWrites() Writes { return Writes{d.specs.Syncs(), d.specs.WrittenBytes()} }

// SyncTime is the time spent in fsync so far.
func (d *Driver) SyncTime() time.Duration { return d.records.files.SyncTime() + d.specs.SyncTime() }
