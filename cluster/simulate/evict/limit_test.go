package evict

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// wanted is a pod whose claim has more combinations of devices than the allocator can ever
// try. The node has no CPU left for the pod, so nothing is tried until another pod goes.
func wanted(entry string) (manifests []string) {
	var devices []string
	for i := range 30 {
		devices = append(devices, fmt.Sprintf("{name: d%d}", i))
	}
	for i := range 8 {
		manifests = append(manifests, podOf(fmt.Sprintf("v%d", i), 1, 1, ""))
	}
	const two = "{name: a, exactly: {deviceClassName: many, allocationMode: ExactCount, count: 15}}, {name: b, exactly: {deviceClassName: many, allocationMode: ExactCount, count: 16}}"
	return append(manifests, objects(1, 4), object.ClassText("many", `device.driver == "many"`),
		"\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: many}\n"+
			"spec: {driver: many, nodeName: n0, pool: {name: many, generation: 1, resourceSliceCount: 1}, devices: ["+strings.Join(devices, ", ")+"]}\n---",
		claimOf("ResourceClaim", "many", two), claimOf("ResourceClaimTemplate", "many", two), podOf("p", 9, 1, entry))
}

// A tenant's claim cannot keep the search busy: each set of pods may cost the allocator
// seconds, and there are many sets. What was not tried is not said to be impossible.
func TestSearchEndsInTime(t *testing.T) {
	for _, entry := range []string{"resourceClaimName: many", "resourceClaimTemplateName: many"} {
		began := time.Now()
		got := suggest(t, Options{Time: 100 * time.Millisecond}, nil, wanted(entry)...)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %s", entry, took)
		}
		want(t, got, "", "", "", "no eviction was found: it takes too long to try which pods are enough")
		if !got.Stopped {
			t.Errorf("%s: %+v is not said to be incomplete", entry, got)
		}
	}
}

// ending is a context that has ended when it is asked for the fourth time.
type ending struct {
	context.Context
	asked *int
}

func (e ending) Err() error {
	if *e.asked++; *e.asked > 3 {
		return errTime
	}
	return nil
}

// If the time ends while a set becomes smaller, the answer is the set that is known to be
// enough.
func TestSearchThatEndsKeepsWhatItHasFound(t *testing.T) {
	manifests := []string{objects(1, 4), podOf("p", 9, 3, "")}
	for i := range 8 {
		manifests = append(manifests, podOf(fmt.Sprintf("v%d", i), i%2, 1, ""))
	}
	s := started(t, read(t, strings.Join(manifests, "\n")))
	e := newSearch(clusterOf(t, s), s, s.Pod("default", "p"), Options{})
	found, err := e.greedy(ending{t.Context(), new(int)}, e.places[0])
	if err != nil || !e.stopped || found == nil || len(found.victims) != 6 {
		t.Fatalf("set %+v, error %v, stopped %v", found, err, e.stopped)
	}
	if text := e.sentence(found, Greedy); text != "the pod fits on n0 if 6 pods are deleted; fewer may be enough, because the search was stopped" {
		t.Error(text)
	}
}
