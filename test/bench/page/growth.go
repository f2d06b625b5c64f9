package page

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// growth is one operation over sizes of machines, or over numbers of claims.
type growth struct {
	name      string
	overCPUs  bool
	benchmark func(size int) string
	values    []float64 // medians by size
	exponent  float64
}

// operations are those of the node path and of the kubelet.
func operations() []growth {
	over := func(format string) func(int) string {
		return func(size int) string { return fmt.Sprintf(format, size) }
	}
	return []growth{
		{name: "read the machine", overCPUs: true, benchmark: over("Read/cpus=%d")},
		{name: "pick 8 CPUs", overCPUs: true, benchmark: over("PickGrowth/cpus=%d")},
		{name: "publish, unchanged, 32 claims", overCPUs: true, benchmark: over("Publish/cpus=%d/claims=32/unchanged")},
		{name: "publish, changed, 32 claims", overCPUs: true, benchmark: over("Publish/cpus=%d/claims=32/renewed")},
		{name: "Prepare and Unprepare, 32 claims", overCPUs: true, benchmark: over("PrepareUnprepare/cpus=%d/claims=32/pair")},
		{name: "kubelet: choose 8 CPUs", overCPUs: true, benchmark: over("Choose/cpus=%d/claim=8/kubelet")},
		{name: "kubelet: Allocate and Remove, 32 claims", overCPUs: true, benchmark: over("Pair/cpus=%d/claims=32/pair")},
		{name: "publish, unchanged, 1024 CPUs", benchmark: over("Publish/cpus=1024/claims=%d/unchanged")},
		{name: "Prepare and Unprepare, 1024 CPUs", benchmark: over("PrepareUnprepare/cpus=1024/claims=%d/pair")},
		{name: "hook, plan", benchmark: over("Hook/claims=%d/plan")},
		{name: "keeper, poll", benchmark: over("Keeper/claims=%d/poll")},
		{name: "keeper, look", benchmark: over("Keeper/claims=%d/look")},
		{name: "daemon, tick", benchmark: over("Lookout/claims=%d/tick")},
		{name: "daemon, look", benchmark: over("Lookout/claims=%d/look")},
		{name: "kubelet: Allocate and Remove, 1024 CPUs", benchmark: over("Pair/cpus=1024/claims=%d/pair")},
	}
}

// growths measures the operations.
func (p Page) growths() ([]growth, error) {
	list := operations()
	for i := range list {
		if err := p.measure(&list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (g growth) sizes() []int {
	if g.overCPUs {
		return measure.Sizes()
	}
	return measure.Counts()
}

func (p Page) measure(g *growth) error {
	var x, y []float64
	for _, size := range g.sizes() {
		value, err := p.value(g.benchmark(size), measure.CPUUnit)
		if err != nil {
			return err
		}
		g.values = append(g.values, value.Median)
		x, y = append(x, float64(size)), append(y, value.Median)
	}
	g.exponent = compare.Exponent(x, y)
	return nil
}

// growthFigures are a figure over CPUs and one over claims, by file name.
func growthFigures(list []growth) map[string]plot.Lines {
	cpus := plot.Lines{Title: "CPU time by the size of the machine", XLabel: "CPUs of the machine", X: floats(measure.Sizes())}
	claims := plot.Lines{Title: "CPU time by the number of claims", XLabel: "claims on the node", X: floats(measure.Counts())}
	for _, g := range list {
		figure := &claims
		if g.overCPUs {
			figure = &cpus
		}
		figure.Lines = append(figure.Lines, plot.Line{Name: g.name, Y: g.values})
	}
	return map[string]plot.Lines{"benchmarks-cpus.svg": cpus, "benchmarks-claims.svg": claims}
}

func growthSection(list []growth) string {
	return `## Growth
The exponent says how an operation grows: 0 is not at all, 1 is in proportion, 2 is fourfold for twice the size.

![CPU time of each operation over 64 to 1024 CPUs, both axes logarithmic](benchmarks-cpus.svg)

` + growthTable(list, true, func(n int) string { return fmt.Sprintf("%d CPUs", n) }) + `
![CPU time of each operation over 1 to 256 claims, both axes logarithmic](benchmarks-claims.svg)

` + growthTable(list, false, Claims)
}

func growthTable(list []growth, overCPUs bool, column func(size int) string) string {
	header := []string{"operation"}
	sizes := growth{overCPUs: overCPUs}.sizes()
	for _, size := range sizes {
		header = append(header, column(size))
	}
	var rows [][]string
	for _, g := range list {
		if g.overCPUs != overCPUs {
			continue
		}
		row := []string{g.name}
		for _, value := range g.values {
			row = append(row, plot.Duration(value))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", g.exponent)))
	}
	return plot.Table(append(header, "exponent"), rows)
}

func floats(list []int) (values []float64) {
	for _, v := range list {
		values = append(values, float64(v))
	}
	return values
}

// Claims returns a number of claims in words.
func Claims(n int) string {
	if n == 1 {
		return "1 claim"
	}
	return fmt.Sprintf("%d claims", n)
}
