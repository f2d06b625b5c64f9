package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// The limits of all waits, for a node of pace 1: [limit] has them for the node that
// is there. None of them is what the driver promises, see the specs for that; they say
// when a spec gives up.
const (
	// pollInterval is how often a spec looks.
	pollInterval = 500 * time.Millisecond
	// firstTimeout holds until the pace of the node is known.
	firstTimeout = 30 * time.Minute
	// eventuallyTimeout is for what takes a pod's start or end, each a matter of
	// seconds, or for all programs of a node to start again.
	eventuallyTimeout = 5 * time.Minute
	// promptTimeout is for what the driver or its keeper does within a second or a few.
	promptTimeout = 20 * time.Second
	// consistently is for what has happened and must not change any more.
	consistently = 3 * time.Second
	// reschedule is how long the scheduler may take to look again at a pod that did
	// not fit: up to 10 s after something has changed.
	reschedule = 15 * time.Second
)

// limit is one of the limits above for the node under test.
func limit(atPaceOne time.Duration) time.Duration { return observer.Pace.Of(atPaceOne) }

// spent is how long the specs have waited, by what for.
var spent = map[string]spending{}

type spending struct {
	times int
	total time.Duration
}

// Waits that are most of a spec's time.
const (
	podsStart     = "pods start"
	podsEnd       = "pods end"
	driverReady   = "driver gets ready"
	driverEnds    = "driver ends"
	kernelAnswers = "the kernel's answers"
)

// spend begins a wait; what it returns ends it.
func spend(what string) func() {
	begin := time.Now()
	return func() {
		sum := spent[what]
		spent[what] = spending{sum.times + 1, sum.total + time.Since(begin)}
	}
}

// Who waits for the suite sees which spec is done, and how long it took, or why it was skipped.
// Of those that are not selected, Ginkgo gives no message.
var _ = ReportAfterEach(func(spec SpecReport) {
	switch name := cutText(spec.FullText(), longestMessage); {
	case !spec.State.Is(types.SpecStateSkipped):
		fmt.Printf(" %s, %.0f s: %s\n", spec.State, spec.RunTime.Seconds(), name)
	case spec.Failure.Message != "":
		fmt.Printf(" skipped: %s: %s\n", name, spec.Failure.Message)
	}
})

// printProfile prints where the time went: what it costs is known before it is cut.
func printProfile(suite Report) {
	ran := suite.SpecReports.WithLeafNodeType(types.NodeTypeIt).WithState(types.SpecStatePassed | types.SpecStateFailureStates)
	if len(ran) == 0 {
		return
	}
	slices.SortFunc(ran, func(a, b SpecReport) int { return cmp.Compare(b.RunTime, a.RunTime) })
	fmt.Printf("\n%d specs in %.0f s, waiting for\n", len(ran), suite.RunTime.Seconds())
	for _, what := range slices.Sorted(maps.Keys(spent)) {
		fmt.Printf("  %4.0f s  %s, %d times\n", spent[what].total.Seconds(), what, spent[what].times)
	}
	fmt.Printf("the longest:\n")
	for _, spec := range ran[:min(longestSpecs, len(ran))] {
		fmt.Printf("  %4.0f s  %s\n", spec.RunTime.Seconds(), cutText(spec.FullText(), longestMessage))
	}
}

// longestSpecs is how many of them are printed.
const longestSpecs = 10

// measurePace has all limits follow the speed of the node, and prints it.
func measurePace(ctx context.Context) {
	GinkgoHelper()
	took, err := observer.Measure(ctx)
	Expect(err).NotTo(HaveOccurred())
	SetDefaultEventuallyTimeout(limit(eventuallyTimeout))
	SetDefaultConsistentlyDuration(consistently)
	fmt.Printf("node %s does the known work in %s: pace %.2f, specs give up after %s\n",
		node.name, took.Round(10*time.Millisecond), float64(observer.Pace), limit(eventuallyTimeout).Round(time.Second))
}
