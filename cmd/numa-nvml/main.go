//go:build cgo

// Command numa-nvml asks NVIDIA's library for the facts about GPUs that are in no file of
// the kernel. It writes them to a file that the node daemon reads. It is a separate
// program because NVIDIA's library needs the C library, and because a failure in it must
// not affect the daemon. On a node without NVIDIA's library, it waits until there is one.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

const (
	retry      = time.Minute     // how long to wait if there is no library, or it fails
	readPeriod = 5 * time.Second // how often to read the GPUs, because MIG and NVLinks change
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("numa-nvml: ")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	file, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		log.Print("error: ", err)
		os.Exit(2)
	}
	library, known := nvml.New(), &seen{faults: map[string]string{}}
	for before := ""; ctx.Err() == nil; {
		err := report(ctx, library, known, file)
		if err != nil && err.Error() != before {
			log.Print("error: ", err)
			before = err.Error()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

func parse(args []string, output io.Writer) (file string, err error) {
	flags := flag.NewFlagSet("numa-nvml", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&file, "report", "/"+numa.GPUReportFile, "`file` to write")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("unexpected argument %q, numa-nvml takes only flags", flags.Arg(0))
	}
	return file, nil
}

// report writes the file whenever the report changes, until the context ends.
func report(ctx context.Context, library nvml.Interface, known *seen, file string) error {
	if ret := library.Init(); ret != nvml.SUCCESS {
		return fmt.Errorf("open NVIDIA's library: %w", ret)
	}
	defer func() { _ = library.Shutdown() }()
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	events, err := listen(library)
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
