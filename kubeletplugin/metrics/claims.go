package metrics

import (
	"maps"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

// maxClaims is how many claims have metrics of their own, the oldest first. A node has
// fewer exclusive CPUs, but there may be any number of claims of memory.
const maxClaims = 1024

// collectClaims is what each claim holds, and how many claims there are. The labels
// namespace and resourceclaim are those of kube-state-metrics.
func (e *Exporter) collectClaims(out sink, d *driver.Driver, figures kubeletplugin.Figures) {
	f := e.families
	grants := d.Grants()
	waiting, faulty := d.Figures().Waiting, 0
	for i := range grants {
		grant := &grants[i]
		if figures.Faulty[grant.UID] {
			faulty++
		}
		if i >= maxClaims {
			continue
		}
		if figures.Faulty[grant.UID] {
			out.add(f.faultyClaims, 1, grant.Namespace, grant.Name)
		}
		e.collectClaim(out, grant)
		e.collectFrequencies(out, grant, d.Config().Tuning.Figures(grant))
	}
	for state, count := range map[string]int{"prepared": len(grants) - waiting - faulty, "faulty": faulty, "waiting": waiting} {
		out.add(f.claims, float64(max(count, 0)), state)
	}
	out.add(f.omittedClaims, float64(max(0, len(grants)-maxClaims)))
}

// held is what a claim holds of one device. Several requests of a claim may hold parts of
// the same device.
type held struct {
	cpus, ways int
	bytes      map[string]uint64 // by size of hugepages; "" for memory without them
	function   bool
}

func (e *Exporter) collectClaim(out sink, grant *ledger.Grant) {
	f := e.families
	devices := make(map[string]*held, len(grant.Shares))
	for _, share := range grant.Shares {
		device := devices[share.Device]
		if device == nil {
			device = &held{}
			devices[share.Device] = device
		}
		device.add(share)
	}
	for name, device := range devices {
		if device.cpus > 0 {
			out.add(f.claimCPUs, float64(device.cpus), grant.Namespace, grant.Name, name)
		}
		if device.ways > 0 {
			out.add(f.claimWays, float64(device.ways), grant.Namespace, grant.Name, name)
		}
		if device.function {
			out.add(f.claimFunctions, 1, grant.Namespace, grant.Name, name)
		}
		for _, size := range slices.Sorted(maps.Keys(device.bytes)) {
			if size == "" {
				out.add(f.claimMemory, float64(device.bytes[size]), grant.Namespace, grant.Name, name)
			} else {
				out.add(f.claimHugepages, float64(device.bytes[size]), grant.Namespace, grant.Name, name, size)
			}
		}
	}
}

// collectFrequencies is how fast the CPUs of a claim are, and should be.
func (e *Exporter) collectFrequencies(out sink, grant *ledger.Grant, figures []tuning.FrequencyFigures) {
	for _, figure := range figures {
		for _, one := range []struct {
			family *family
			kHz    int
			label  string
		}{
			{e.families.claimFrequency, figure.Slowest, "slowest"},
			{e.families.claimFrequency, figure.Fastest, "fastest"},
			{e.families.claimAskedFrequency, figure.AskedMin, deviceclasses.FrequencyMin},
			{e.families.claimAskedFrequency, figure.AskedMax, deviceclasses.FrequencyMax},
		} {
			if one.kHz > 0 {
				out.add(one.family, float64(one.kHz)*1000, grant.Namespace, grant.Name, figure.Device, one.label)
			}
		}
	}
}

func (h *held) add(share ledger.Share) {
	if cache := share.Cache(); cache != nil {
		h.ways += cache.Ways
	}
	h.function = h.function || share.Function() != nil
	zone := share.Zone()
	if zone == nil {
		return
	}
	h.cpus += zone.CPUs.Size()
	if zone.MemoryBytes == 0 && len(zone.HugepageBytes) == 0 {
		return
	}
	if h.bytes == nil {
		h.bytes = make(map[string]uint64, 1+len(zone.HugepageBytes))
	}
	if zone.MemoryBytes > 0 {
		h.bytes[""] += zone.MemoryBytes
	}
	for size, bytes := range zone.HugepageBytes {
		h.bytes[size] += bytes
	}
}
