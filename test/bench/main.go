// Command bench measures this driver against others and writes docs/benchmarks.md, compares a
// short run with what is recorded, or writes docs/bench-start.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/placement"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/start"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
	"github.com/dra-driver-numa/dra-driver-numa/test/startup"
)

// config is what the flags say.
type config struct {
	repository string
	rounds     int
	each       time.Duration
	placements string
	claims     int
	smoke      bool
	record     bool
	start      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c config
	flag.StringVar(&c.repository, "repository", "../..", "`folder` of the repository, with bin/kubectl-numa and bin/numa-pin")
	flag.IntVar(&c.rounds, "rounds", 5, "how often each benchmark runs")
	flag.DurationVar(&c.each, "each", 50*time.Millisecond, "how long each run of a benchmark takes")
	flag.StringVar(&c.placements, "placements", "", "`file` that keeps where programs place claims, which no machine changes; read if it exists")
	flag.IntVar(&c.claims, "claims", 10_000, "how many claims the programs place on each machine")
	flag.BoolVar(&c.smoke, "smoke", false, "only run the short comparison with "+recordedFile)
	flag.BoolVar(&c.record, "record", false, "with -smoke: write "+recordedFile)
	flag.StringVar(&c.start, "start", "", "only write docs/bench-start.md, from a `file` of the end-to-end suite")
	flag.Parse()
	run := c.writePage
	if c.start != "" {
		run = c.writeStart
	}
	if c.smoke {
		run = c.runSmoke
	}
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bench: error: %v\n", err)
		os.Exit(1)
	}
}

func progress(line string) { fmt.Fprintln(os.Stderr, "bench: "+line) }

// writePage measures everything.
func (c config) writePage(ctx context.Context) (err error) {
	host.Settle(ctx, host.Patience, progress)
	began := time.Now()
	p := page.Page{Machine: host.Describe(), Rounds: c.rounds, Each: c.each, Claims: c.claims, Comparisons: comparisons()}
	for _, program := range [][]string{{"kubectl-numa", "version", "--client"}, {"numa-pin", "--help"}} {
		started, err := host.Start(filepath.Join(c.repository, "bin", program[0]), page.Starts, program[1:]...)
		if err != nil {
			return err
		}
		p.Programs = append(p.Programs, started)
	}
	if p.Values, err = gather.Run(ctx, c.repository, suites, c.rounds, c.each, progress); err != nil {
		return err
	}
	if p.Others, err = gather.Run(ctx, c.repository, otherSuites, otherRounds, c.each, progress); err != nil {
		return err
	}
	p.LoadAfter = host.Load()
	if p.Placements, err = c.place(); err != nil {
		return err
	}
	p.Took = time.Since(began)
	return p.Write(filepath.Join(c.repository, "docs"))
}

// writeStart writes the page of what the end-to-end suite has measured.
func (c config) writeStart(context.Context) error {
	run, err := readJSON[startup.Run](c.start)
	if err != nil {
		return err
	}
	return start.Write(run, host.Describe(), filepath.Join(c.repository, "docs"))
}

func (c config) place() (results []placement.Result, err error) {
	if results, err = readJSON[[]placement.Result](c.placements); err == nil || !errors.Is(err, os.ErrNotExist) {
		return results, err
	}
	if results, err = placement.Run(c.claims, progress); err != nil || c.placements == "" {
		return results, err
	}
	return results, writeJSON(c.placements, results)
}

// threeDigits is as much as a ratio has from one run to the next.
func threeDigits(v float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// recordedFile has the ratios of the last run with -record.
const recordedFile = "recorded.json"

// factor is how much worse than recorded a ratio may be.
const factor = 2

// runSmoke compares CPU time, which other programs on the machine hardly change. Its
// rounds are short, so that the two sides of a ratio run one after the other.
func (c config) runSmoke(ctx context.Context) error {
	values, err := gather.Run(ctx, c.repository, smokeSuites, smokeRounds, 0, func(string) {})
	if err != nil {
		return err
	}
	measured := map[string]compare.Spread{}
	medians := map[string]float64{}
	for _, comparison := range smokeComparisons() {
		ratio, err := comparison.Of(values, measure.CPUUnit)
		if err != nil {
			return err
		}
		measured[comparison.Name], medians[comparison.Name] = ratio, threeDigits(ratio.Median)
		fmt.Printf("%-60s %.4g (%.4g to %.4g)\n", comparison.Name, ratio.Median, ratio.Low, ratio.High)
	}
	if c.record {
		return writeJSON(recordedFile, medians)
	}
	recorded, err := readJSON[map[string]float64](recordedFile)
	if err != nil {
		return err
	}
	var worse []error
	for _, line := range compare.Worse(recorded, measured, factor) {
		worse = append(worse, errors.New(line))
	}
	if len(recorded) != len(measured) {
		worse = append(worse, fmt.Errorf("%s has %d ratios, %d are measured: run with -record", recordedFile, len(recorded), len(measured)))
	}
	return errors.Join(worse...)
}
