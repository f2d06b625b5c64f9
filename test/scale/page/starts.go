package page

import (
	"fmt"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/fleet"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
)

func p99(p fleet.Phase) time.Duration { return stats.Percentile(p.Others, 0.99) }

func mean(values []time.Duration) (mean time.Duration) {
	for _, value := range values {
		mean += value / time.Duration(len(values))
	}
	return mean
}

// figures are what trials with and without flow control are compared by. All are above 0.
var figures = []struct {
	name string
	of   func(fleet.Phase) time.Duration
}{
	{"another user waits, p50", func(p fleet.Phase) time.Duration { return stats.Percentile(p.Others, 0.5) }},
	{"mean", func(p fleet.Phase) time.Duration { return mean(p.Others) }},
	{"p99", p99},
	{"until a daemon is ready, p50", func(p fleet.Phase) time.Duration { return stats.Percentile(p.Each, 0.5) }},
	{"until all are ready", func(p fleet.Phase) time.Duration { return p.Took }},
}

// flowControl is "" if no daemons started with flow control.
func (p LoadPage) flowControl() string {
	baseline, ok := p.phase(fleet.PhaseNone)
	if len(p.Starts) == 0 || !ok {
		return ""
	}
	var with, without []fleet.Phase
	for _, pair := range p.Starts {
		with, without = append(with, pair.With), append(without, pair.Without)
	}
	header, alone := []string{"flow control"}, []string{"no daemon runs"}
	off, on, ratios := []string{"off"}, []string{"on"}, []string{"on / off"}
	for i, figure := range figures {
		header = append(header, figure.name)
		a, b := nanoseconds(with, figure.of), nanoseconds(without, figure.of)
		on, off = append(on, plot.Duration(compare.Of(a).Median)), append(off, plot.Duration(compare.Of(b).Median))
		ratios = append(ratios, interval(stats.Ratio(a, b)))
		if i < 3 {
			alone = append(alone, duration(figure.of(baseline)))
		} else {
			alone = append(alone, "–")
		}
	}
	header, alone, ratios = append(header, "refused (429)"), append(alone, "–"), append(ratios, "–")
	off, on = append(off, refused(without)), append(on, refused(with))
	return fmt.Sprintf("## With the chart's flow control\n"+`All daemons start at once on nodes without slices, without and with the FlowSchema of the chart
([`+"`flowControl.enabled`"+`](chart.md#flow-control)): %d pairs, in which they take turns. Times are medians. A ratio has the range in
which the true one is in 95 of 100 cases. The first line is the baseline: how long the other user waits without this driver.

`, len(p.Starts)) + plot.Table(header, [][]string{alone, off, on, ratios}) + "\n" + p.difference(with, without)
}

// difference says what the flow control changes for the other user.
func (p LoadPage) difference(with, without []fleet.Phase) string {
	ratio := stats.Ratio(nanoseconds(with, p99), nanoseconds(without, p99))
	switch {
	case ratio.High < 1:
		return fmt.Sprintf("With flow control, the other user's p99 is %s times as long as without it.\n", plot.Number(ratio.Ratio))
	case ratio.Low > 1:
		return fmt.Sprintf("With flow control, the other user's p99 is longer: %s times as long as without it.\n", plot.Number(ratio.Ratio))
	}
	return "These trials do not show that flow control changes the other user's p99: the range of its ratio has 1 in it.\n"
}

func nanoseconds(phases []fleet.Phase, of func(fleet.Phase) time.Duration) (list []float64) {
	for _, phase := range phases {
		list = append(list, float64(of(phase)))
	}
	return list
}

// refused is the median number of requests that were refused.
func refused(phases []fleet.Phase) string {
	var counts []float64
	for _, phase := range phases {
		counts = append(counts, float64(phase.Refused))
	}
	return plot.Number(compare.Of(counts).Median)
}
