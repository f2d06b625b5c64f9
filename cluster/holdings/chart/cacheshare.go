package chart

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// describeCache says what a share has of a cache. It returns nothing for other shares.
func describeCache(share *holdings.Share) (facts []string) {
	ways, hasWays := share.Amounts[string(deviceclasses.CapacityWays)]
	_, isMember := share.Amounts[string(deviceclasses.CapacityMembers)]
	if share.Driver != deviceclasses.DriverName || !hasWays && !isMember && share.Cache == nil {
		return nil
	}
	status := share.Cache
	switch {
	case status != nil && status.MaxWays > status.Ways:
		facts = append(facts, fmt.Sprintf("%d to %d ways", status.Ways, status.MaxWays))
	case status != nil && status.Ways > 0:
		facts = append(facts, canvas.Count(status.Ways, "way"))
	case hasWays:
		facts = append(facts, canvas.Count(int(ways.Value()), "way"))
	default:
		facts = append(facts, "the ways of all members")
	}
	if limit := Bandwidth(share); limit != "" {
		facts = append(facts, limit)
	}
	switch {
	case status != nil && status.Group != "":
		facts = append(facts, "group "+status.Group)
	case !share.Reported:
		facts = append(facts, "not reported as prepared yet")
	}
	return facts
}

// Bandwidth returns the limit of the memory bandwidth of a share of a cache, such as "40%
// of the bandwidth for each core". It is empty if there is none. Before the driver has
// written the status of the claim, a limit in MBps is not known: the amount that stands
// for no limit depends on the processor.
func Bandwidth(share *holdings.Share) string {
	var percent, mbps int64
	if status := share.Cache; status != nil {
		percent, mbps = int64(status.BandwidthPercent), int64(status.BandwidthMBps)
	} else if amount, has := share.Amounts[string(deviceclasses.CapacityBandwidthPercent)]; has && amount.CmpInt64(deviceclasses.MaxBandwidthPercent) < 0 {
		percent = amount.Value()
	}
	switch {
	case percent > 0:
		return fmt.Sprintf("%d%% of the bandwidth for each core", percent)
	case mbps > 0:
		return fmt.Sprintf("%d MBps of bandwidth", mbps)
	}
	return ""
}
