package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/translation"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// translating is the command translate with its flags.
type translating struct {
	reading
	rules      rules
	alignment  *choice
	policy     *choice
	partOfCore *choice
	cpuLimit   *choice
	threads    int64
	twins      []string // RESOURCE=CLASS
}

// defaultThreads is how many threads a core has if no published zone says it.
const defaultThreads = 2

func translateCommand(c cli, command *cobra.Command) runner {
	t := translating{
		reading:    c.reads(append(listFormats(), formatObjs)),
		alignment:  newChoice(translate.ScopeContainer, translate.ScopePod),
		policy:     newChoice(translate.PolicySingleNUMANode, translate.PolicyRestricted, translate.PolicyBestEffort, translate.PolicyNone),
		partOfCore: newChoice(translate.PartOfCoreRound, translate.PartOfCoreLeave),
		cpuLimit:   newChoice(translate.CPULimitKeep, translate.CPULimitLift),
	}
	t.from.addTo(command)
	t.rules.addTo(command)
	t.alignment.addTo(command, "scope", "", "what is at one place, as the kubelet's topologyManagerScope: each container, or all of a pod")
	t.policy.addTo(command, "policy", "", "where CPUs may be if no NUMA node has enough, as the kubelet's topologyManagerPolicy")
	t.partOfCore.addTo(command, "part-of-core", "", "what becomes of containers whose CPUs are no whole cores: they have more (round), or their pods are not translated (leave)")
	t.cpuLimit.addTo(command, "cpu-limit", "", "what becomes of CPU limits of containers with CPUs of their own; without them, pods are Burstable")
	command.Flags().Int64Var(&t.threads, "threads-per-core", 0, fmt.Sprintf("`number` of CPUs of a core (default: that of the published zones, or %d)", defaultThreads))
	command.Flags().StringArrayVar(&t.twins, "twin", nil, "`RESOURCE=CLASS`: a DeviceClass for an extended resource, such as example.com/gpu=gpu.example.com; can be repeated. Classes with spec.extendedResourceName are twins already")
	t.from.scope.addNamespacesTo(command, "pods and workloads")
	t.from.scope.addSelectorTo(command, "pods and workloads")
	t.output.addTo(command)
	t.output.addSortTo(command, func() columns { return translationColumns })
	addCheck(command, func() error {
		if command.Flags().Changed("threads-per-core") && t.threads < 1 {
			return fmt.Errorf("--threads-per-core %d: want 1 or more", t.threads)
		}
		return nil
	})
	return withContext(t.run)
}

func (t *translating) run(ctx context.Context) error {
	options := translate.Options{Scope: t.alignment.value, Policy: t.policy.value, PartOfCore: t.partOfCore.value, CPULimit: t.cpuLimit.value, ThreadsPerCore: t.threads}
	if len(t.twins) > 0 {
		twins, err := translate.ParseTwins(strings.Join(t.twins, ","))
		if err != nil {
			return fmt.Errorf("--twin: %w", err)
		}
		options.Twins = twins
	}
	if err := t.rules.check(); err != nil {
		return err
	}
	t.from.keepTexts = t.output.format == formatObjs
	objects, err := t.from.Snapshot(ctx)
	if err != nil {
		return err
	}
	scope := &t.from.scope
	// What the flags do not say is as the objects have it.
	options = options.WithTwinsOf(objects.Classes)
	options.ThreadsPerCore = cmp.Or(options.ThreadsPerCore, translation.Threads(objects.Slices), defaultThreads)
	report := translation.Of(objects, options, func(object metav1.Object) bool {
		return (len(t.from.files) == 0 || objects.Where(object) != inCluster) && scope.has(object)
	})
	if asked := scope.String(); asked != "" && len(report.Items) == 0 {
		return fmt.Errorf("there are no pods or workloads %s in %s", asked, &t.from)
	}
	aborted, err := t.place(ctx, objects, report)
	if err != nil {
		return err
	}
	report.Sum()
	var placed []*corev1.Pod
	if report.Simulated {
		placed = objects.Waiting()
	}
	t.warn(objects, placed)
	manifests, without, err := report.Manifests(objects)
	if err != nil {
		return &failure{err}
	}
	if without > 0 && t.output.format == formatObjs {
		t.note("printing only the templates for %d pods: they run, or their workloads are not among the files. For more, name manifests, or the output of kubectl get deployments -o yaml, in --filename", without)
	}
	if err := t.print(document{
		what: "translations", kind: kindTranslations, value: report, scope: scope,
		text:  func(s style) string { return translationText(s, report) },
		objs:  func() document { return writtenObjects(manifests) },
		names: func() []objectName { return translatedNames(report) },
	}); err != nil {
		return err
	}
	if len(aborted) > 0 {
		return withHint(aborted[0])
	}
	return translationVerdict(report)
}

// writtenObjects are manifests for kubectl apply.
func writtenObjects(list []any) document { return objects("objects", list) }

// place simulates where the pods go, if nodes publish zones.
func (t *translating) place(ctx context.Context, objects *snapshot.Snapshot, report *translation.Report) ([]*simulate.AbortError, error) {
	if len(objects.Nodes) == 0 {
		return nil, nil
	}
	published := false
	for range accounting.Zones(objects.Slices) {
		published = true
		break
	}
	if !published {
		t.note("it is not known which pods fit, because no ResourceSlice has zones of driver %s", deviceclasses.DriverName)
		return nil, nil
	}
	if err := report.Apply(objects); err != nil {
		return nil, err
	}
	rules, err := t.rulesFor(ctx, &t.from, t.rules)
	if err != nil {
		return nil, err
	}
	cluster, err := simulate.New(objects, rules)
	if err != nil {
		return nil, err
	}
	progress := t.progress("pods placed")
	result, err := cluster.Run(ctx, objects.Waiting(), simulate.Options{Strategy: simulate.Scheduler, Progress: progress.at})
	progress.done()
	if err != nil {
		return nil, &failure{err}
	}
	return report.Place(result), nil
}
