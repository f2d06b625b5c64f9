package nri

import (
	"fmt"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// BenchmarkCreateContainer is what a container's start and end cost more on a
// node with 250 containers: three questions of the runtime, over its socket.
func BenchmarkCreateContainer(b *testing.B) {
	r, _ := connected(b, coreWith(map[string]driver.Pinned{"a": claimA, "b": claimB}))
	for _, id := range ids("c", 250) {
		r.create(id)
	}
	for b.Loop() {
		r.create("new", "a")
		r.stop("new")
	}
}

// BenchmarkRepairs is a refresh that has nothing to do.
func BenchmarkRepairs(b *testing.B) {
	core := coreWith(map[string]driver.Pinned{"a": claimA, "b": claimB})
	p := New(Options{Core: core})
	containers := map[string]*container{}
	for i, id := range ids("c", 250) {
		c := newContainer(withCPUs(containerMessage(id), "0-1", ""))
		if i%5 == 0 {
			c = newContainer(withCPUs(containerMessage(id, "a"), "2-3", "0"))
		}
		containers[id] = c
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := p.repairs(containers); len(got) != 0 {
			b.Fatal(fmt.Sprint(got))
		}
	}
}
