package kubeletplugin

import (
	"context"
	"maps"
	"slices"
	"strings"
)

const (
	reasonHugepages         = "NUMAHugepagesMissing"
	reasonHugepagesRestored = "NUMAHugepagesRestored"
)

// hugepagesNotice is about pools that are smaller than what claims hold of them.
func hugepagesNotice() notice {
	return notice{reason: reasonHugepages, overReason: reasonHugepagesRestored, over: "Every zone has as many hugepages as claims hold"}
}

// setMissing takes, by device, which hugepages of claims the node does not have.
func (p *publisher) setMissing(hugepages map[string]string) {
	var parts []string
	for _, device := range slices.Sorted(maps.Keys(hugepages)) {
		parts = append(parts, "device "+device+": "+hugepages[device])
	}
	text := strings.Join(parts, "; ")
	p.mu.Lock()
	isNew := text != p.missing
	p.missing = text
	p.mu.Unlock()
	if isNew {
		p.renew()
	}
}

// tellMissing creates the event on the Node.
func (p *publisher) tellMissing(ctx context.Context) {
	p.mu.Lock()
	text := p.missing
	p.mu.Unlock()
	p.events.notify(ctx, &p.hugepages, text)
}
