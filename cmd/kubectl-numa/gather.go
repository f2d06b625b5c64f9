package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/version"
)

// gathering is the command gather with its flags.
type gathering struct {
	cli
	from source
	file string
}

func gatherCommand(c cli, command *cobra.Command) runner {
	g := gathering{cli: c}
	command.Flags().StringVar(&g.file, "file", "", "`file` to write, which must not exist yet (default numa-TIME.tar.gz)")
	g.from.addClusterTo(command)
	g.from.addDriverTo(command)
	return func(ctx context.Context, _ []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return g.run(ctx, time.Now())
	}
}

func (g *gathering) run(ctx context.Context, now time.Time) error {
	if g.file == "" {
		g.file = "numa-" + now.UTC().Format("20060102-150405") + ".tar.gz"
	}
	config, client, err := g.from.connect()
	if err != nil {
		return err
	}
	// Create the file first: a wrong name is found before the cluster is read.
	file, err := os.OpenFile(g.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	gathered, err := collect.Bundle(ctx, client, collect.NewExec(config, client), g.from.driver, now)
	if ctx.Err() != nil {
		return &failure{errors.Join(fmt.Errorf("read the cluster: %w", context.Cause(ctx)), file.Close(), os.Remove(g.file))}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("read the cluster: %w", err), file.Close(), os.Remove(g.file))
	}
	gathered.Client = version.String()
	err = bundle.Write(file, gathered)
	if err = errors.Join(err, file.Close()); err != nil {
		return &failure{errors.Join(fmt.Errorf("write %q: %w", g.file, err), os.Remove(g.file))}
	}
	g.noteLookAlikes(gathered.Facts)
	g.noteLacking(slices.Concat(gathered.Facts.Unread, gathered.Facts.Missing))
	if _, err := fmt.Fprintln(g.stdout, g.file); err != nil {
		return &failure{err}
	}
	return nil
}

// noteLacking says what could not be read: for each setting the first reason, and how often
// else. Thousands of nodes may not answer.
func (g *gathering) noteLacking(unread []diagnosis.Unread) {
	var settings []string
	more := make(map[string][]diagnosis.Unread)
	for _, one := range unread {
		if more[one.Setting] == nil {
			settings = append(settings, one.Setting)
		}
		more[one.Setting] = append(more[one.Setting], one)
	}
	for _, setting := range settings {
		text := message.OneLine(more[setting][0].Why)
		if others := len(more[setting]) - 1; others > 0 {
			text += fmt.Sprintf("; %d more are missing", others)
		}
		g.note("the bundle lacks %s: %s", setting, text)
	}
}

// readBundle reads a file that gather wrote.
func readBundle(path string) (bundle.Bundle, error) {
	file, err := os.Open(path)
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("--from: %w", err)
	}
	defer file.Close()
	read, err := bundle.Read(file)
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("--from %q: %w", path, err)
	}
	return read, nil
}
