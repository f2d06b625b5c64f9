// Command sbom writes what the programs of a release are made of, as an SPDX document: the
// modules that the Go linker has put into each of them, with versions and hashes, and the
// version of Go. It reads that from the programs and not from go.mod, so that it names what
// there is. It has a module of its own, because no other part needs the library of SPDX.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spdx/tools-golang/json"
)

const usage = "usage: sbom -version v0.1.0 -time SECONDS -out FILE PROGRAM…"

func main() {
	var o options
	flag.StringVar(&o.version, "version", "", "`version` of the release, such as v0.1.0")
	seconds := flag.Int64("time", 0, "time of the document in `seconds` since 1970: that of the commit, so that a second build writes the same")
	out := flag.String("out", "", "`file` to write")
	flag.Parse()
	o.created = time.Unix(*seconds, 0)
	if o.version == "" || *seconds <= 0 || *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(o, *out, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: error: %v\n", err)
		os.Exit(1)
	}
}

// run writes the document of the programs to a file.
func run(o options, out string, paths []string) error {
	var programs []program
	for _, path := range paths {
		p, err := readProgram(path)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	file, err := os.Create(filepath.Clean(out))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := json.Write(render(o, programs), file, json.Indent("  ")); err != nil {
		return err
	}
	return file.Close()
}
