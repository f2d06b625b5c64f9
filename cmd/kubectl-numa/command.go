package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// reading contains what the commands that read a cluster and print an answer have in
// common.
type reading struct {
	cli
	from   source
	output *printer
}

// reads returns the common part of a command. The first output format is the default.
func (c cli) reads(formats []string) reading {
	return reading{cli: c, output: newPrinter(formats...)}
}

// addDiagnosisTo adds the flags for a command that needs more than objects, and that
// trusts the driver's pods.
func (r *reading) addDiagnosisTo(command *cobra.Command) {
	r.from.addDiagnosisTo(command)
	r.from.addDriverTo(command)
	r.output.addTo(command)
}

// addCheck adds a check that is made before a command runs: of flags that contradict each
// other.
func addCheck(command *cobra.Command, check func() error) {
	others := command.PreRunE
	command.PreRunE = func(command *cobra.Command, args []string) error {
		if others != nil {
			if err := others(command, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// print writes the answer in the format that the user chose.
func (r *reading) print(d document) error { return r.output.print(r.stdout, d) }

// question contains what the commands about one pod or claim have in common: the
// objects, the rules of the scheduler, and the namespace of the pod or claim.
type question struct {
	reading
	rules     rules
	namespace string // of the object, or of the objects of a list; "" means all

	queues map[*simulate.Cluster]*queue // the pods that were placed first
	linter *lint.Linter                 // of the objects; nil means not needed yet
}

func (c cli) asks() *question { return &question{reading: c.reads(listFormats())} }

// addTo adds the flags of the question to a command.
func (q *question) addTo(command *cobra.Command) {
	q.from.addTo(command)
	q.rules.addTo(command)
	q.from.scope.addNamespaceTo(command, "`name` of the namespace (default: that of the kubeconfig's context; for files and bundles, default); also that of objects in files that name none")
	q.output.addTo(command)
}

// locate sets the namespace of an object and returns its name. The user may write NAME,
// or NAMESPACE/NAME as simulate prints it.
func (q *question) locate(name string) string {
	if namespace, short, found := strings.Cut(name, "/"); found {
		q.from.scope.namespace, name = namespace, short
	}
	q.namespace = q.from.namespace()
	return name
}

// rules says which scheduler places pods, as flags have it.
type rules struct {
	version string // of Kubernetes; "" means that of the cluster
	gates   string // list of feature gates
}

// addTo adds the flags to a command.
func (r *rules) addTo(command *cobra.Command) {
	command.Flags().StringVar(&r.version, "kubernetes", "", "`version` of the scheduler, such as 1.38, whose rules decide "+
		"(default: that of the API server; for files, "+simulate.DefaultRules().Release()+")")
	command.Flags().StringVar(&r.gates, "feature-gates", "", "`list` of the scheduler's feature gates that differ from those of the API server, "+
		"such as DRAConsumableCapacity=false; without a cluster, from the defaults of that version")
}

// check finds a wrong flag before the cluster is read.
func (r *rules) check() error {
	known := simulate.DefaultRules()
	if r.version != "" {
		var err error
		if known, err = simulate.RulesOf(r.version); err != nil {
			return fmt.Errorf("--kubernetes: %w", err)
		}
	}
	return r.setGates(&known)
}

func (r *rules) setGates(known *simulate.Rules) (err error) {
	if *known, err = known.With(r.gates); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	return nil
}

// rulesFor returns what the flags say. What they do not say is as in the cluster.
func (c cli) rulesFor(ctx context.Context, from *source, flags rules) (simulate.Rules, error) {
	if err := flags.check(); err != nil {
		return simulate.Rules{}, err
	}
	known, err := from.Rules(ctx, flags.version)
	if err != nil {
		c.note("using the feature gates of Kubernetes %s, because those of the cluster cannot be read; set --feature-gates if they differ: %s",
			known.Release(), message.OneLine(err.Error()))
	}
	return known, flags.setGates(&known)
}

// load reads the objects of a source, and returns them as a cluster that can place pods.
func (c cli) load(ctx context.Context, from *source, flags rules) (*simulate.Cluster, *snapshot.Snapshot, error) {
	objects, rules, err := c.read(ctx, from, flags)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := simulate.New(objects, rules)
	return cluster, objects, err
}

// read reads the objects of a source, and the rules of its scheduler. The objects include
// the pods of workloads of files.
func (c cli) read(ctx context.Context, from *source, flags rules) (*snapshot.Snapshot, simulate.Rules, error) {
	if err := flags.check(); err != nil {
		return nil, simulate.Rules{}, err
	}
	objects, err := from.Snapshot(ctx)
	if err != nil {
		return nil, simulate.Rules{}, err
	}
	if err := simulate.AddPods(objects); err != nil {
		return nil, simulate.Rules{}, err
	}
	rules, err := c.rulesFor(ctx, from, flags)
	return objects, rules, err
}

// withContext adapts a function for a command that takes no arguments.
func withContext(run func(context.Context) error) runner {
	return func(ctx context.Context, _ []string) error { return run(ctx) }
}

// withNode adapts a function for a command that takes the name of a node, or no
// argument for all nodes.
func withNode(node *string, run func(context.Context) error) runner {
	return func(ctx context.Context, args []string) error {
		*node = strings.Join(args, "")
		return run(ctx)
	}
}

// objectKind is a kind of object that a question can be about.
type objectKind struct {
	name    string   // as messages have it
	group   string   // API group; empty for the core group
	aliases []string // the other names that kubectl has for it
	listed  bool     // a question without a name is about all objects of the kind
	names   func(objects *snapshot.Snapshot, namespace string) []string
}

// usage returns how a user writes an object of the kind.
func (k objectKind) usage() string {
	if k.listed {
		return k.name + " [NAME]"
	}
	return k.name + " NAME"
}

// is reports whether the user's word names the kind: a name, with the API group or without
// it, as kubectl prints and accepts it.
func (k objectKind) is(word string) bool {
	word = strings.ToLower(word)
	if k.group != "" {
		word = strings.TrimSuffix(word, "."+k.group)
	}
	return word == k.name || slices.Contains(k.aliases, word)
}

// splitKind returns the kind and the name that the arguments have, as KIND NAME or
// KIND/NAME. rest of KIND/NAME may have a slash, too: the name may begin with a namespace.
// The name is "" if the arguments have only a kind that is listed. Without arguments, it
// is the first kind.
func splitKind(kinds []objectKind, args []string) (kind objectKind, name string, found bool) {
	word, named := kinds[0].name, false
	switch len(args) {
	case 0:
	case 1:
		word, name, named = strings.Cut(args[0], "/")
	case 2:
		word, name, named = args[0], args[1], true
	default:
		return objectKind{}, "", false
	}
	i := slices.IndexFunc(kinds, func(k objectKind) bool { return k.is(word) })
	if i < 0 || named != (name != "") || !named && !kinds[i].listed {
		return objectKind{}, "", false
	}
	return kinds[i], name, true
}

// takes makes a command accept KIND NAME, KIND/NAME and, for kinds that are listed, KIND.
// It lets shells complete them. If the objects cannot be read, there are no names to
// complete.
func (q *question) takes(command *cobra.Command, kinds []objectKind, run func(ctx context.Context, kind, name string) error) runner {
	var names, usages []string
	for _, kind := range kinds {
		names, usages = append(names, kind.name), append(usages, kind.usage())
	}
	command.Args = func(_ *cobra.Command, args []string) error {
		if _, _, found := splitKind(kinds, args); found {
			return nil
		}
		return fmt.Errorf("want %s, not %q", strings.Join(usages, " or "), strings.Join(args, " "))
	}
	command.ValidArgsFunction = func(command *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		word, _, slash := strings.Cut(toComplete, "/")
		prefix := ""
		switch {
		case len(args) == 1:
			word = args[0]
		case len(args) == 0 && slash:
			prefix = word + "/"
		case len(args) == 0:
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		i := slices.IndexFunc(kinds, func(k objectKind) bool { return k.is(word) })
		objects, err := q.from.forCompletion(command.Context())
		if len(args) > 1 || i < 0 || err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := kinds[i].names(objects, cmp.Or(q.namespace, q.from.namespace()))
		for i := range found {
			found[i] = prefix + found[i]
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	return func(ctx context.Context, args []string) error {
		kind, name, _ := splitKind(kinds, args)
		return run(ctx, kind.name, name)
	}
}

// namesIn returns the names of the objects in a namespace.
func namesIn[T interface {
	GetName() string
	GetNamespace() string
}](objects []T, namespace string) (names []string) {
	for _, object := range objects {
		if object.GetNamespace() == namespace {
			names = append(names, object.GetName())
		}
	}
	return names
}
