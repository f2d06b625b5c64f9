// Command image writes a container image from static binaries, without a container engine
// or a registry: one layer, one platform, as a tar archive that is an OCI image layout
// and a docker archive at once. The same input gives the same bytes. It decides nothing
// about what the binaries do and never pushes anything.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deployments/archive"
)

const prog = "image"

// errUsage marks an error in how the command was called: exit status 2.
var errUsage = errors.New("usage")

func main() {
	err := run(os.Args[1:], os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", prog, err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", prog, err)
		os.Exit(1)
	}
}

// config is the command line: which image to write, and from what.
type config struct {
	ref        string // full image name with tag
	out        string // path of the archive
	arch       string // GOARCH of the binaries
	entrypoint []string
	stopSignal string // "" is the runtime's default, SIGTERM
	labels     labels
	compress   bool // with gzip, for a registry: readers of archives know both
	entries    []entry
}

// labels are those of the image. They are also annotations of its manifest.
type labels map[string]string

// String is for package flag: there is no default.
func (l labels) String() string { return "" }

// Set adds a label KEY=VALUE.
func (l labels) Set(text string) error {
	key, value, _ := strings.Cut(text, "=")
	if key == "" || value == "" {
		return errors.New("want key=value")
	}
	l[key] = value
	return nil
}

func run(args []string, stderr io.Writer) error {
	c, err := parseArgs(args, stderr)
	if err != nil {
		return err
	}
	layer, err := renderLayer(c.entries)
	if err != nil {
		return err
	}
	content, err := renderArchive(c, layer)
	if err != nil {
		return err
	}
	return archive.Replace(c.out, content)
}

func parseArgs(args []string, stderr io.Writer) (config, error) {
	c := config{labels: labels{}}
	var entrypoint string
	flags := flag.NewFlagSet(prog, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is printed once, in one line
	flags.StringVar(&c.ref, "ref", "", "image `name:tag`")
	flags.StringVar(&c.out, "out", "", "`file` to write")
	flags.StringVar(&c.arch, "arch", runtime.GOARCH, "architecture of the binaries")
	flags.StringVar(&entrypoint, "entrypoint", "", "command of the image, words separated by spaces")
	flags.StringVar(&c.stopSignal, "stop-signal", "", "`signal` that asks a container to end; default SIGTERM")
	flags.Var(c.labels, "label", "`key=value` of the image and its manifest, once for each label. "+labelCreated+" is also the time of the image")
	flags.BoolVar(&c.compress, "compress", false, "compress the layer with gzip")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stderr, "usage: %s -ref name:tag -out file.tar [-entrypoint command] [-stop-signal signal] [-label key=value] [-compress] /path=file|/path=dynamic:file|/path=->target …\n", prog)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return config{}, err
	}
	if err != nil {
		return config{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	c.entrypoint = strings.Fields(entrypoint)
	c.entries, err = parseEntries(flags.Args())
	switch {
	case err != nil:
		return config{}, fmt.Errorf("%w: %w", errUsage, err)
	case tagOf(c.ref) == "":
		return config{}, fmt.Errorf("%w: -ref %q: want name:tag", errUsage, c.ref)
	case c.out == "":
		return config{}, fmt.Errorf("%w: -out is empty: want a file", errUsage)
	}
	return c, nil
}

// tagOf returns the tag of an image name, or "" when it names none.
func tagOf(ref string) string {
	name, tag, _ := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
	if name == "" || strings.ContainsAny(ref, " @") {
		return ""
	}
	return tag
}
