// Package page writes the page of benchmarks, docs/benchmarks.md, and its figures. It
// shows what was measured, and judges goals only as package compare does.
package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/placement"
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
	for name, svg := range figures {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.md"), []byte(text), 0o644)
}

// render returns the page, and its figures by file name.
func (p Page) render() (text string, figures map[string]string, err error) {
	ratios, err := p.ratios()
	if err != nil {
		return "", nil, err
	}
	goals, err := p.goals(ratios)
	if err != nil {
		return "", nil, err
	}
	grown, err := p.growths()
	if err != nil {
		return "", nil, err
	}
	figures = map[string]string{"benchmarks-ratios.svg": bars(ratios).SVG()}
	for name, figure := range growthFigures(grown) {
		figures[name] = figure.SVG()
	}
	pairs, err := p.pairs()
	if err != nil {
		return "", nil, err
	}
	sections := []string{
		introduction, p.machine(), goals, ratioSection(ratios), growthSection(grown), pairs, p.placements(), p.costs(), notes,
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
	m := p.Machine
	priority := "normal priority"
	if m.Nice > 0 {
		priority = fmt.Sprintf("nice %d, so other programs went first", m.Nice)
	}
	return "## Machine\n" + table([]string{"what", "value"}, [][]string{
		{"processor", m.Processor},
		{"CPUs", fmt.Sprint(m.CPUs)},
		{"kernel", "Linux " + m.Kernel},
		{"Go", m.Go},
		{"load averages before", m.Load},
		{"load averages after the benchmarks", p.LoadAfter},
		{"priority", priority},
		{"rounds", fmt.Sprintf("%d, with %s for each benchmark", p.Rounds, p.Each)},
		{"duration", p.Took.Round(time.Second).String()},
	}) + `
A load average above the number of CPUs means that other programs ran at the same time. Then the ranges are wider, and
times are longer than on a quiet machine. Ratios suffer less.
`
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

// table is a table in Markdown.
func table(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(header)
	line(strings.Split(strings.Repeat("---,", len(header)-1)+"---", ","))
	for _, row := range rows {
		line(row)
	}
	return b.String()
}
