// Package page writes the page of benchmarks, docs/benchmarks.md, and its figures. It
// shows what was measured, and judges goals only as package compare does.
package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/placement"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// Starts is how often each program is started.
const Starts = 20

// Page is everything that was measured.
type Page struct {
	Machine     host.Machine
	LoadAfter   string // load averages when the benchmarks ended
	Took        time.Duration
	Rounds      int
	Each        time.Duration
	Comparisons []compare.Comparison
	Values      gather.Result
	Others      gather.Result
	Claims      int // of the trace
	Placements  []placement.Result
	Programs    []host.Program
}

// Write writes the page and its figures to the folder.
func (p Page) Write(folder string) error {
	text, figures, err := p.render()
	if err != nil {
		return err
	}
	return plot.WritePage(folder, "benchmarks.md", text, figures)
}

// render returns the page, and its figures by file name.
func (p Page) render() (text string, figures map[string]string, err error) {
	ratios, err := p.ratios()
	if err != nil {
		return "", nil, err
	}
	grown, err := p.growths()
	if err != nil {
		return "", nil, err
	}
	compared, figures, err := ratioSection(ratios)
	if err != nil {
		return "", nil, err
	}
	for name, figure := range growthFigures(grown) {
		figures[name] = figure.SVG()
	}
	pairs, err := p.pairs()
	if err != nil {
		return "", nil, err
	}
	sections := []string{
		introduction, p.machine(), p.goals(ratios), compared, growthSection(grown), pairs, p.placements(), p.costs(), notes,
	}
	return strings.Join(sections, "\n"), figures, nil
}

const introduction = `<!-- make bench writes this page. Do not edit it. -->
# Benchmarks
This page compares the driver with the kubelet's own CPU manager and with simpler programs. Each ratio is of two programs
that ran one after the other on the same machine, and less is better. ` + "`make bench`" + ` measures everything again and writes this
page; it takes about 30 minutes on 2 CPUs that do nothing else.

Times are CPU time of the process, because other programs on the machine hardly change it. A number is the median of the
rounds. The range behind it is from the lowest to the highest round.
`

func (p Page) machine() string {
	return "## Machine\n" + plot.Table([]string{"what", "value"}, append(p.Machine.Rows(),
		[]string{"load averages after the benchmarks", p.LoadAfter},
		[]string{"rounds", fmt.Sprintf("%d, with %s for each benchmark", p.Rounds, p.Each)},
		[]string{"duration", p.Took.Round(time.Second).String()},
	)) + host.Note
}

// ratio is a comparison with its result.
type ratio struct {
	compare.Comparison
	compare.Spread
}

func (p Page) ratios() (list []ratio, err error) {
	for _, c := range p.Comparisons {
		spread, err := c.Of(p.Values, measure.CPUUnit)
		if err != nil {
			return nil, err
		}
		list = append(list, ratio{c, spread})
	}
	return list, nil
}

// value returns the spread of one benchmark.
func (p Page) value(benchmark, unit string) (compare.Spread, error) {
	values := p.Values.Values(benchmark, unit)
	if len(values) == 0 {
		return compare.Spread{}, fmt.Errorf("%s has no %s", benchmark, unit)
	}
	return compare.Of(values), nil
}
