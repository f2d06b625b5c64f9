package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
)

// gathering is what the flags of gather say.
type gathering struct {
	cli
	from source
	file string
}

func (c cli) gatherCommand() *cobra.Command {
	g := gathering{cli: c}
	command := &cobra.Command{
		Use:   "gather",
		Short: "Write what a diagnosis of a cluster needs into a file",
		Long: `Write what a diagnosis of a cluster needs into a file, which other commands read
as --from: objects that decide where pods go, what the chart installed, settings
of kubelets, what nodes have of claims, events, and logs of the driver. Nothing
is changed in the cluster. Nodes are asked by a program that is run in the pods
of the driver, if you may run one.

There are no secrets in it: neither environments nor arguments of containers, no
annotations but this driver's, no parameters of other drivers. Names, labels and
images are as they are. What cannot be read is in the file as a reason.`,
		Example: c.examples(`
# into a file that is named after the time
gather
# into this one, and a look at it somewhere else
gather --file bundle.tar.gz
validate --from bundle.tar.gz
drift --from bundle.tar.gz
explain pod trainer --from bundle.tar.gz`),
		Args: c.flagsOnly,
		RunE: func(command *cobra.Command, _ []string) error { return g.run(command.Context(), time.Now()) },
	}
	command.Flags().StringVar(&g.file, "file", "", "`file` to write, which must not be there yet (default numa-TIME.tar.gz)")
	g.from.addClusterTo(command)
	return command
}

func (g *gathering) run(ctx context.Context, now time.Time) error {
	if g.file == "" {
		g.file = "numa-" + now.UTC().Format("20060102-150405") + ".tar.gz"
	}
	config, client, err := g.from.connect()
	if err != nil {
		return err
	}
	// Before the cluster is asked for all it has.
	file, err := os.OpenFile(g.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	gathered, err := collect.Bundle(ctx, client, collect.NewExec(config, client), now)
	if err != nil {
		return errors.Join(fmt.Errorf("read the cluster: %w", err), file.Close(), os.Remove(g.file))
	}
	err = bundle.Write(file, gathered)
	if err = errors.Join(err, file.Close()); err != nil {
		return &failure{errors.Join(fmt.Errorf("write %q: %w", g.file, err), os.Remove(g.file))}
	}
	for _, unread := range slices.Concat(gathered.Facts.Unread, gathered.Facts.Missing) {
		g.note("not in the file: %s: %s", unread.Setting, oneLine(unread.Why))
	}
	if _, err := fmt.Fprintln(g.stdout, g.file); err != nil {
		return &failure{err}
	}
	return nil
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
