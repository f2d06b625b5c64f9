package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/migration"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// migrate is the command migrate with its flags.
type migrate struct {
	reading
	dir string // where files are written; "" for nowhere
}

func migrateCommand(c cli, command *cobra.Command) runner {
	m := migrate{reading: c.reads(answerFormats())}
	m.from.takesFiles = true
	m.from.files.addTo(command, "`file`, folder or URL with configurations of kubelets and of an RDT daemon, and objects; - is standard input; can be repeated (default: the cluster that kubectl talks to)")
	m.from.addClusterTo(command)
	command.Flags().StringVar(&m.dir, "write", "", "`folder` into which to write the files; it must not have them yet")
	_ = command.MarkFlagDirname("write") // for completion in shells; the flag exists
	m.output.addTo(command)
	return withContext(m.run)
}

func (m *migrate) run(ctx context.Context) error {
	sources, lacking, err := m.sources(ctx)
	if err != nil {
		return err
	}
	plan, err := migration.Make(sources)
	if err != nil {
		return err
	}
	if err := m.write(plan.Files); err != nil {
		return err
	}
	err = m.print(document{what: "plan", kind: kindMigration, value: plan, text: func(s style) string {
		if text := migrationText(plan, s.wide); text != "" || lacking != nil {
			return text
		}
		return "there is nothing to migrate\n"
	}})
	if err != nil {
		return err
	}
	return lacking
}

// sources reads the files, or the cluster. lacking says what a cluster did not tell.
func (m *migrate) sources(ctx context.Context) (sources []migration.Source, lacking, err error) {
	if err := m.from.check(); err != nil {
		return nil, nil, err
	}
	if len(m.from.files) > 0 {
		err := m.from.files.eachOf(ctx, migration.Endings(), func(name string, text io.Reader) error {
			list, err := migration.Read(name, text)
			sources = append(sources, list...)
			return err
		})
		return sources, nil, err
	}
	objects, err := m.from.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	var nodes []string
	for _, node := range objects.Nodes {
		nodes, sources = append(nodes, node.Name), append(sources, migration.Node(node))
	}
	for _, pod := range objects.Pods {
		if pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
			sources = append(sources, migration.Pod(pod))
		}
	}
	_, client, err := m.from.connect()
	if err != nil {
		return nil, nil, err
	}
	list, unread := collect.Origins(ctx, client, nodes)
	return append(sources, list...), lackingOf(unread, len(nodes)), nil
}

// lackingOf returns an error about what could not be read of a cluster with so many nodes, or
// nil. It names the first kubelet only.
func lackingOf(unread []diagnosis.Unread, nodes int) error {
	var lacking, hints []string
	kubelets := slices.DeleteFunc(slices.Clone(unread), func(u diagnosis.Unread) bool { return u.Component != "kubelet" })
	if count := len(kubelets); count > 0 {
		first, why := kubelets[0], kubelets[0].Why
		if first.Node == "" { // it is about all of them
			count = nodes
		} else {
			why = first.Node + ": " + why
		}
		lacking = append(lacking, fmt.Sprintf("the configuration of %d of %d kubelets: %s", count, nodes, why))
		hints = append(hints, "bind a role with the verb get on nodes/proxy, or give the configuration files of the kubelets with --filename")
	}
	for _, u := range unread {
		if u.Component != "kubelet" {
			lacking = append(lacking, u.Setting+": "+u.Why)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return &hintedError{errors.New("the plan lacks " + strings.Join(lacking, "; ")), hints}
}

// write writes the files into the folder, if there is one.
func (m *migrate) write(files []migration.File) error {
	if m.dir == "" {
		return nil
	}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	for _, f := range files {
		if path := filepath.Join(m.dir, f.Name); exists(path) {
			return fmt.Errorf("--write: %s exists already", path)
		}
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(m.dir, f.Name), []byte(f.Text), 0o600); err != nil {
			return &failure{err}
		}
	}
	return nil
}

// maxSources is how many sources of a line are named.
const maxSources = 3

// migrationText shows the plan: fields by outcome, files, steps. Only all of it has the fields of
// a kubelet that have nothing to do with the driver. It is empty if there is nothing to migrate.
func migrationText(plan migration.Plan, all bool) string {
	var b strings.Builder
	var outcome migration.Outcome
	unrelated := 0
	for _, line := range plan.Lines {
		if line.Unrelated && !all {
			unrelated++
			continue
		}
		if line.Outcome != outcome {
			outcome = line.Outcome
			fmt.Fprintf(&b, "%s:\n", outcome)
		}
		head := fmt.Sprintf("%s %s, %s", line.Kind, message.First(line.Sources, maxSources), line.Field)
		if line.Value != "-" {
			head += ": " + line.Value
		}
		fmt.Fprintf(&b, "  %s\n%s", message.OneLine(head), indented(line.Says))
	}
	if unrelated > 0 {
		fmt.Fprintf(&b, "and fields of kubelets that stay and have nothing to do with the driver: %d; -o wide shows them\n", unrelated)
	}
	for _, f := range plan.Files {
		fmt.Fprintf(&b, "\n# %s: %s\n%s", f.Name, f.For, f.Text)
	}
	for i, step := range plan.Steps {
		fmt.Fprintf(&b, "\nstep %d\n%s  may break:\n%s", i+1, indented(step.Do), indented(step.Breaks))
	}
	return b.String()
}

// indented wraps a sentence of a list.
func indented(text string) string {
	const indent = "    "
	var b strings.Builder
	for line := range strings.Lines(wrapTo(message.OneLine(text), 80-len(indent))) {
		b.WriteString(indent + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
