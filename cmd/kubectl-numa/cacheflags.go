package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// cache returns the part of a cache that the flags describe; nil if there is no such flag.
func (w *wishFlags) cache(command *cobra.Command) (*manifest.Cache, error) {
	changed := command.Flags().Changed
	if !changed("ways") && !changed("cache-class") && !changed("bandwidth") {
		return nil, nil
	}
	if changed("ways") && w.ways < 1 {
		return nil, fmt.Errorf("--ways %d: want 1 or more", w.ways)
	}
	cache := &manifest.Cache{Class: w.caches, Ways: w.ways}
	if !changed("bandwidth") {
		return cache, nil
	}
	amount := &cache.BandwidthPercent
	text, percent := strings.CutSuffix(w.bandwidth, "%")
	if !percent {
		amount, text = &cache.BandwidthMBps, strings.TrimSuffix(w.bandwidth, "MBps")
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || text == w.bandwidth {
		return nil, fmt.Errorf("--bandwidth %q: want a percentage such as 40%%, or an amount such as 20000MBps", w.bandwidth)
	}
	*amount = number
	return cache, nil
}
