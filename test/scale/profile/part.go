package profile

import (
	"errors"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Part is how much CPU time went to a part of the scheduler.
type Part struct {
	Name string
	CPU  time.Duration
}

// The parts that depend most on what drivers publish.
const (
	Selectors = "selectors, in CEL"
	Capacity  = "what claims take of capacities"
	Garbage   = "garbage collection"
)

// parts are those of the scheduler, each with what the names of its functions have. A part
// does not have what it calls of another one: memory that it allocates is its own, and a
// request that it sends is not.
var parts = []struct {
	name      string
	functions []string
}{
	{Selectors, []string{"k8s.io/dynamic-resource-allocation/cel.", "github.com/google/cel-go/"}},
	{Capacity, []string{"ConsumedCapacity", ".CmpRequestOverCapacity"}},
	{"the slices of each node", []string{".GatherPools", ".addSlice", ".buildPool", ".validateDeviceNames", "k8s.io/dynamic-resource-allocation/api."}},
	{"the allocator's other parts", []string{"k8s.io/dynamic-resource-allocation/"}},
	{"the other parts of the plugin for claims", []string{"/plugins/dynamicresources."}},
	{"the queue of pods", []string{"k8s.io/kubernetes/pkg/scheduler/backend/queue."}},
	{"the other parts of the scheduler", []string{"k8s.io/kubernetes/pkg/scheduler"}},
	{"requests to the API server, and its events", []string{"k8s.io/client-go/", "net/http.", "golang.org/x/net/", "k8s.io/apimachinery/pkg/watch.", "k8s.io/apimachinery/pkg/runtime"}},
	{Garbage, []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
}

const others = "others"

// Split divides the CPU time of a profile of kube-scheduler among its parts: all of them,
// and others for the rest.
func Split(p *profile.Profile) ([]Part, error) {
	value := -1
	for i, t := range p.SampleType {
		if t.Type == "cpu" && t.Unit == "nanoseconds" {
			value = i
		}
	}
	if value < 0 {
		return nil, errors.New("the profile has no CPU time in nanoseconds")
	}
	list := make([]Part, 0, len(parts)+1)
	for _, part := range parts {
		list = append(list, Part{Name: part.name})
	}
	list = append(list, Part{Name: others})
	for _, sample := range p.Sample {
		list[partOf(sample)].CPU += time.Duration(sample.Value[value])
	}
	return list, nil
}

// partOf returns the index of the part that the innermost function of a part belongs to.
func partOf(sample *profile.Sample) int {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			for i, part := range parts {
				for _, name := range part.functions {
					if line.Function != nil && strings.Contains(line.Function.Name, name) {
						return i
					}
				}
			}
		}
	}
	return len(parts)
}
