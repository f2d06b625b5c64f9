package main

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

const ours, bench = ".", "test/bench"

// suites are the node path and its baselines. The two sides of a ratio are neighbours, so
// that little time is between them.
var suites = []gather.Suite{
	{Module: ours, Package: "./numa", Pattern: "^BenchmarkRead$"},
	{Module: ours, Package: "./numa/pick", Pattern: "^BenchmarkPick"},
	{Module: bench, Package: "./kubelet", Pattern: "^BenchmarkChoose$"},
	{Module: bench, Package: "./kubelet", Pattern: "^BenchmarkPair$"},
	{Module: ours, Package: "./driver", Pattern: "^Benchmark(PrepareUnprepare|PrepareUnprepareWithWays|Publish|Slice)$"},
	{Module: ours, Package: "./cdi/pin", Pattern: "^Benchmark(Hook|CountHook|Keeper|Lookout)$"},
}

// otherSuites are benchmarks that only show what something costs.
var otherSuites = append([]gather.Suite{{Module: ours, Package: "./numa", Pattern: "^BenchmarkSignature512CPUs$"}}, all(
	"./numa/ways", "./driver/attached", "./kubeletplugin/nri", "./kubeletplugin/metrics", "./webhook",
	"./cluster/holdings", "./cluster/simulate",
)...)

// all returns all benchmarks of some packages of the driver.
func all(packages ...string) (suites []gather.Suite) {
	for _, name := range packages {
		suites = append(suites, gather.Suite{Module: ours, Package: name, Pattern: "."})
	}
	return suites
}

const otherRounds = 3

// smokeSuites are the node path at one size, for a short run.
var smokeSuites = []gather.Suite{
	{Module: ours, Package: "./numa", Pattern: "^BenchmarkRead$/^cpus=(64|512)$", Times: 10},
	{Module: ours, Package: "./numa/pick", Pattern: "^BenchmarkPick$/^512cpus$", Times: 2000},
	{Module: bench, Package: "./kubelet", Pattern: "^BenchmarkChoose$/^cpus=512$/^claim=8$/^(ours|kubelet|firstfit)$", Times: 100},
	{Module: bench, Package: "./kubelet", Pattern: "^BenchmarkPair$/^cpus=512$/^claims=32$", Times: 50},
	{Module: ours, Package: "./driver", Pattern: "^Benchmark(PrepareUnprepare|Publish)$/^cpus=512$/^claims=32$", Times: 500},
	{Module: ours, Package: "./cdi/pin", Pattern: "^Benchmark(Hook|Keeper|Lookout)$/^claims=32$", Times: 100},
}

const smokeRounds = 5

const (
	choosing = "Choose/cpus=512/claim=%d/%s"
	pair     = "PrepareUnprepare/%s/pair"
	kubelets = "Pair/%s/pair"
)

// typical is the load that most ratios are about.
var typical = measure.Load{CPUs: 512, Claims: 32, Each: 8}

// comparisons are the ratios of the page.
func comparisons() []compare.Comparison {
	list := []compare.Comparison{
		{Kind: page.Choice, Name: "choose 8 of 512 CPUs / kubelet", A: fmt.Sprintf(choosing, 8, "ours"), B: fmt.Sprintf(choosing, 8, "kubelet"), Goal: 1.0 / 50},
		{Kind: page.Choice, Name: "choose 64 of 512 CPUs / kubelet", A: fmt.Sprintf(choosing, 64, "ours"), B: fmt.Sprintf(choosing, 64, "kubelet"), Goal: 1.0 / 50},
		{Kind: page.Choice, Name: "choose 8 of 512 CPUs / kubelet with uncore caches", A: fmt.Sprintf(choosing, 8, "ours"), B: fmt.Sprintf(choosing, 8, "kubelet-uncore"), Goal: 1.0 / 50},
		{Kind: page.Choice, Name: "choose 8 of 512 CPUs / first fit", A: fmt.Sprintf(choosing, 8, "ours"), B: fmt.Sprintf(choosing, 8, "firstfit")},
	}
	for _, load := range measure.Loads() {
		list = append(list, compare.Comparison{
			Kind: page.Pair, Name: fmt.Sprintf("Prepare and Unprepare, %d CPUs, %s / kubelet", load.CPUs, page.Claims(load.Claims)),
			A: fmt.Sprintf(pair, load), B: fmt.Sprintf(kubelets, load),
		})
	}
	for _, where := range []struct {
		name, suffix string
		goal         float64
	}{{"on a disk", "-disk", 1.5}, {"in memory", "", 0}} {
		list = append(list, compare.Comparison{
			Kind: page.Parts, Name: "Prepare and Unprepare, ways / no ways, " + where.name,
			A: "PrepareUnprepareWithWays/512cpus-monitored" + where.suffix, B: "PrepareUnprepareWithWays/baseline-monitored" + where.suffix, Goal: where.goal,
		})
	}
	return append(list, nodePath(typical)...)
}

// nodePath are ratios with the least that could be done: the same files without a
// driver, or the read of one file.
func nodePath(load measure.Load) []compare.Comparison {
	claims := fmt.Sprintf("claims=%d", load.Claims)
	return []compare.Comparison{
		{Kind: page.Parts, Name: "Prepare and Unprepare / its files alone", A: fmt.Sprintf(pair, load), B: fmt.Sprintf("PrepareUnprepare/%s/files", load)},
		{Kind: page.Parts, Name: "publish unchanged / publish after a change", A: fmt.Sprintf("Publish/%s/unchanged", load), B: fmt.Sprintf("Publish/%s/renewed", load)},
		{Kind: page.OneFile, Name: "hook, plan / read one file", A: "Hook/" + claims + "/plan", B: "Hook/" + claims + "/baseline"},
		{Kind: page.OneFile, Name: "keeper, poll / read one file", A: "Keeper/" + claims + "/poll", B: "Keeper/" + claims + "/baseline"},
		{Kind: page.OneFile, Name: "keeper, look / read one file", A: "Keeper/" + claims + "/look", B: "Keeper/" + claims + "/baseline"},
		{Kind: page.OneFile, Name: "daemon, tick / read one file", A: "Lookout/" + claims + "/tick", B: "Lookout/" + claims + "/baseline"},
		{Kind: page.OneFile, Name: "daemon, look / read one file", A: "Lookout/" + claims + "/look", B: "Lookout/" + claims + "/baseline"},
	}
}

// smokeComparisons are the ratios of the short run.
func smokeComparisons() []compare.Comparison {
	list := []compare.Comparison{
		{Name: "read 512 CPUs / read 64 CPUs", A: "Read/cpus=512", B: "Read/cpus=64"},
		{Name: "pick 8 of an empty NUMA node / first fit", A: "Pick/512cpus/empty8", B: "Pick/512cpus/empty8/firstfit"},
		{Name: "pick 120 of a fragmented NUMA node / first fit", A: "Pick/512cpus/fragmented120", B: "Pick/512cpus/fragmented120/firstfit"},
	}
	for _, c := range comparisons() {
		if c.A == fmt.Sprintf(choosing, 8, "ours") && c.B != fmt.Sprintf(choosing, 8, "kubelet-uncore") || c.A == fmt.Sprintf(pair, typical) && c.B == fmt.Sprintf(kubelets, typical) {
			list = append(list, c)
		}
	}
	return append(list, nodePath(typical)...)
}
