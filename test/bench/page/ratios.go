package page

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
)

// Kinds of comparisons. All ratios of one kind answer the same question, so that they can be
// compared.
const (
	Choice  = "choice"
	Pair    = "pair"
	Parts   = "parts"
	OneFile = "file"
)

// kind says what the ratios of one kind are. Their names have before and after in them, which
// the title says once for all.
type kind struct{ name, title, text, before, after string }

func kinds() []kind {
	return []kind{
		{
			Choice, "Choice of CPUs: time of this driver / of another program",
			"This driver chooses CPUs, and so do the kubelet's static CPU manager and a program that takes the first free ones.", "", "",
		},
		{
			Pair, "Prepare and Unprepare: time of this driver / of the kubelet",
			"A claim begins and ends beside others on the node. The kubelet's static CPU manager does the same.",
			"Prepare and Unprepare, ", " / kubelet",
		},
		{
			Parts, "This driver / this driver with other work",
			"Claims with ways of a cache and without, all of Prepare and only its files, publishing without a change and after one.", "", "",
		},
		{
			OneFile, "Work that repeats: time of this driver / of reading one file",
			"What each start of a container (hook) and each second (keeper, daemon) cost on a node with 32 claims.", "", " / read one file",
		},
	}
}

// ratioSection returns the section of the ratios, and a figure for each kind of them.
func ratioSection(ratios []ratio) (text string, figures map[string]string, err error) {
	text, figures = "## Ratios\nA ratio with a goal has an orange mark at the goal.\n", make(map[string]string)
	shown := 0
	for _, k := range kinds() {
		var rows [][]string
		figure := plot.Bars{Title: k.title, Note: "CPU time; less is better"}
		for _, r := range ratios {
			if r.Kind != k.name {
				continue
			}
			name := strings.TrimSuffix(strings.TrimPrefix(r.Name, k.before), k.after)
			rows = append(rows, []string{name, spread(r.Spread, fraction)})
			if r.Goal > 0 {
				figure.Note = "CPU time; less is better; the orange mark is the goal"
			}
			figure.Bars = append(figure.Bars, plot.Bar{Name: name, Median: r.Median, Low: r.Low, High: r.High, Goal: r.Goal})
		}
		shown += len(rows)
		file := "benchmarks-" + k.name + ".svg"
		figures[file] = figure.SVG()
		text += fmt.Sprintf("\n### %s\n%s\n\n![Bars of the ratios in the table below, on a logarithmic axis](%s)\n\n", k.title, k.text, file) +
			plot.Table([]string{"what", "ratio"}, rows)
	}
	if shown != len(ratios) {
		return "", nil, fmt.Errorf("%d of %d ratios are of no kind", len(ratios)-shown, len(ratios))
	}
	return text, figures, nil
}
