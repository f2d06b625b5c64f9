// Command allocator measures what claims cost Kubernetes' allocator on one node, and writes
// docs/bench-allocator.md. It makes the nodes and the claims, has test/upstream/onenode.sh
// compile a benchmark with each version of the allocator, and runs them in turn. It imports no
// allocator itself.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
)

// calls is how often a round calls the allocator for each case.
const calls = 1000

// The version that is not in go.mod yet, and the Go that it needs.
const (
	nextModule = "v0.38.0-beta.0"
	nextGo     = "1.27.1"
)

// config is what the flags say.
type config struct {
	repository string
	pages      string
	rounds     int
	wait       time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c config
	flag.StringVar(&c.repository, "repository", ".", "`folder` of the repository")
	flag.StringVar(&c.pages, "pages", "docs", "`folder` for the page")
	flag.IntVar(&c.rounds, "rounds", 20, "how often each case runs")
	flag.DurationVar(&c.wait, "wait", host.Patience, "how long to wait for a load average of 1 or less, which compiling exceeds")
	flag.Parse()
	if err := c.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bench-allocator: error: %v\n", err)
		os.Exit(1)
	}
}

func progress(line string) { fmt.Fprintln(os.Stderr, "bench-allocator: "+line) }

func (c config) run(ctx context.Context) error {
	began := time.Now()
	cases, err := allCases()
	if err != nil {
		return err
	}
	input, err := os.MkdirTemp("", "allocator")
	if err != nil {
		return err
	}
	defer os.RemoveAll(input)
	text, err := json.Marshal(cases)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(input, "cases.json"), text, 0o600); err != nil {
		return err
	}
	versions, err := c.versions(ctx)
	if err != nil {
		return err
	}
	var programs []gather.Program
	for i, v := range versions {
		progress("compile the allocator of Kubernetes " + v.Name)
		path := filepath.Join(input, v.Name+".test")
		if versions[i].Go, err = c.compile(ctx, v, path); err != nil {
			return err
		}
		programs = append(programs, gather.Program{
			Suite:  gather.Suite{Package: "Kubernetes " + v.Name, Pattern: "^BenchmarkCase$", Times: calls},
			Path:   path,
			Folder: input,
			Prefix: v.Name + "/",
			Env:    []string{"INPUT=" + input},
		})
	}
	host.Settle(ctx, c.wait, progress)
	p := Page{Machine: host.Describe(), Rounds: c.rounds, Versions: versions, Cases: cases}
	if p.Values, err = gather.Rounds(ctx, programs, c.rounds, 0, progress); err != nil {
		return err
	}
	p.LoadAfter, p.Took = host.Load(), time.Since(began)
	page, err := p.render()
	if err != nil {
		return err
	}
	return plot.WritePage(c.pages, "bench-allocator.md", page, nil)
}

// versions are that of go.mod, and the next one.
func (c config) versions(ctx context.Context) ([]Version, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/dynamic-resource-allocation")
	list.Dir = c.repository
	module, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	versions := []Version{{Name: now, Module: strings.TrimSpace(string(module))}, {Name: next, Module: nextModule, Go: nextGo}}
	for _, v := range versions {
		if !strings.HasPrefix(v.Module, "v0."+strings.TrimPrefix(v.Name, "1.")+".") {
			return nil, fmt.Errorf("module %s is not that of Kubernetes %s", v.Module, v.Name)
		}
	}
	return versions, nil
}

// compile writes the benchmark with that version of the allocator, and returns the version of
// Go that it used: that of v, or else the installed one.
func (c config) compile(ctx context.Context, v Version, path string) (string, error) {
	environment := os.Environ()
	if v.Go != "" {
		environment = append(environment, "GOTOOLCHAIN=go"+v.Go)
	}
	script := exec.CommandContext(ctx, filepath.Join(c.repository, "test/upstream/onenode.sh"), v.Module, path)
	script.Env = environment
	if output, err := script.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", script, err, output)
	}
	version := exec.CommandContext(ctx, "go", "version", path)
	output, err := version.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", version, err)
	}
	_, after, found := bytes.Cut(output, []byte(": go"))
	if !found {
		return "", fmt.Errorf("%s says %q", version, output)
	}
	return strings.TrimSpace(string(after)), nil
}
