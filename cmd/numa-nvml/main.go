//go:build cgo

// Command numa-nvml asks NVIDIA's library for the facts about GPUs that are in no file of
// the kernel. It writes them to a file that the node daemon reads. It is a separate
// program because NVIDIA's library needs the C library, and because a failure in it must
// not affect the daemon. On a node without NVIDIA's library, it waits until there is one.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

const (
	retry      = time.Minute     // how long to wait if there is no library, or it fails
	readPeriod = 5 * time.Second // how often to read the GPUs, because MIG and NVLinks change
)

func main() {
	cli.Main("numa-nvml", func(ctx context.Context, args []string) error {
		return cli.Program{Name: "numa-nvml", Commands: []cli.Command{
			{Name: "", Args: "[flags]", Run: run, About: `Asks NVIDIA's library about the GPUs of this node, and writes what it says to a file
that dra-numa reads. It does so until it is ended.`},
		}}.Run(ctx, args, os.Stdout)
	})
}

// run writes the file until ctx ends.
func run(ctx context.Context, c cli.Call) error {
	file, format, err := parse(c)
	if err != nil {
		return err
	}
	library, known := nvml.New(), &seen{faults: map[string]string{}}
	before := ""
	say := func(err error) {
		if err != nil && err.Error() != before {
			fmt.Fprint(os.Stderr, format.Line(time.Now(), "numa-nvml", "error: "+err.Error()))
			before = err.Error()
		}
	}
	for ctx.Err() == nil {
		say(report(ctx, library, known, file, say))
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
	return nil
}

func parse(c cli.Call) (file string, format cli.LogFormat, err error) {
	flags := c.Flags()
	flags.StringVar(&file, "report", "/"+numa.GPUReportFile, "`file` to write")
	format.AddFlag(flags)
	return file, format, c.ParseAll(flags)
}

// report writes the file whenever the report changes, until the context ends. It says what
// the file lacks.
func report(ctx context.Context, library nvml.Interface, known *seen, file string, say func(error)) error {
	if ret := library.Init(); ret != nvml.SUCCESS {
		return fmt.Errorf("open NVIDIA's library: %w", ret)
	}
	defer func() { _ = library.Shutdown() }()
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	events, err := known.listen(library)
	if err != nil {
		return err
	}
	defer func() { _ = events.Free() }()
	var written []byte
	for ctx.Err() == nil {
		text, err := known.report(library)
		if err != nil {
			return err
		}
		say(known.unnamed)
		if !bytes.Equal(text, written) {
			if err := durable.Replace(dir, filepath.Base(file), text, 0o644); err != nil {
				return err
			}
			written = text
		}
		if err := known.next(events, readPeriod); err != nil {
			return err
		}
	}
	return nil
}
