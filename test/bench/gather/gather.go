// Package gather runs benchmarks of several packages in turn, again and again, and
// collects what they print. The numbers of one round are from the same minute, so their
// ratios do not depend on what else the machine did. The package judges no number.
package gather

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Suite is a package whose benchmarks are run.
type Suite struct {
	Module  string // its folder, relative to the repository
	Package string // relative to the module, ./numa
	Pattern string // of -test.bench
	Times   int    // that each benchmark repeats its operation in a round; 0: as often as the time allows
}

// benchtime is the flag of the test for this suite. On a busy machine, a time is over
// before the caches of the processor are warm, and a number of repetitions is not.
func (s Suite) benchtime(each time.Duration) string {
	if s.Times > 0 {
		return strconv.Itoa(s.Times) + "x"
	}
	return each.String()
}

// folder is relative to the repository.
func (s Suite) folder() string { return filepath.Join(s.Module, s.Package) }

// Result has the values of each round by benchmark and unit: "Read/cpus=64", "ns/op".
type Result map[string]map[string][]float64

// Values returns the values of one benchmark, one for each round, nil if it did not run.
func (r Result) Values(benchmark, unit string) []float64 { return r[benchmark][unit] }

// Program is a compiled suite.
type Program struct {
	Suite
	Path   string   // of the executable, absolute or relative to the folder
	Folder string   // that it runs in
	Prefix string   // before the names of its benchmarks in the result
	Env    []string // added to the environment of this process
}

// Run compiles the suites of the repository and runs each in so many rounds. A benchmark
// whose suite has no number of repetitions takes about as long as each says.
func Run(ctx context.Context, repository string, suites []Suite, rounds int, each time.Duration, progress func(line string)) (Result, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binaries := map[string]string{}
	var programs []Program
	for _, s := range suites {
		if binaries[s.folder()] == "" {
			binaries[s.folder()] = filepath.Join(dir, strconv.Itoa(len(binaries))+".test")
			// Without tables for debuggers, linking takes half as long.
			command := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", binaries[s.folder()], s.Package)
			command.Dir = filepath.Join(repository, s.Module)
			if output, err := command.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("compile the tests of %s: %w\n%s", s.Package, err, output)
			}
		}
		programs = append(programs, Program{Suite: s, Path: binaries[s.folder()], Folder: filepath.Join(repository, s.folder())})
	}
	return Rounds(ctx, programs, rounds, each, progress)
}

// Rounds runs each of the programs in so many rounds.
func Rounds(ctx context.Context, programs []Program, rounds int, each time.Duration, progress func(line string)) (Result, error) {
	result := Result{}
	for round := range rounds {
		progress(fmt.Sprintf("round %d of %d", round+1, rounds))
		for _, p := range programs {
			began := time.Now()
			command := exec.CommandContext(ctx, p.Path, "-test.run=^$", "-test.bench="+p.Pattern, "-test.benchtime="+p.benchtime(each), "-test.cpu=1")
			command.Dir, command.Env = p.Folder, append(os.Environ(), p.Env...)
			output, err := command.CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("benchmarks of %s: %w\n%s", p.Package, err, output)
			}
			if n := result.parse(output, p.Prefix); n == 0 {
				return nil, fmt.Errorf("%s has no benchmark %s", p.Package, p.Pattern)
			}
			progress(fmt.Sprintf("  %s took %s", p.Package, time.Since(began).Round(100*time.Millisecond)))
		}
	}
	for name, units := range result {
		for unit, values := range units {
			if len(values) != rounds {
				return nil, fmt.Errorf("%s printed %s in %d of %d rounds", name, unit, len(values), rounds)
			}
		}
	}
	return result, nil
}

// parse adds what one run printed, and returns the number of benchmarks. A line is
// "BenchmarkRead/cpus=64   100   5670478 ns/op   432764 B/op".
func (r Result) parse(output []byte, prefix string) (benchmarks int) {
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || len(fields)%2 != 0 {
			continue
		}
		name, ok := strings.CutPrefix(fields[0], "Benchmark")
		if _, err := strconv.Atoi(fields[1]); !ok || err != nil {
			continue
		}
		benchmarks++
		name = prefix + name
		for i := 2; i < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				continue
			}
			if r[name] == nil {
				r[name] = map[string][]float64{}
			}
			r[name][fields[i+1]] = append(r[name][fields[i+1]], value)
		}
	}
	return benchmarks
}
