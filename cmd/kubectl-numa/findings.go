package main

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// inCluster is the Where of objects that come from a cluster.
const inCluster = "the cluster"

// findings is the result of lint.
type findings struct {
	Looked  int     `json:"looked"`  // number of objects that were checked
	Objects []found `json:"objects"` // objects with findings: classes, templates, claims, workloads, pods
}

// found is an object with its findings.
type found struct {
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Where     string         `json:"where"` // file and document, or the cluster
	Findings  []lint.Finding `json:"findings"`
}

// known looks up objects that other objects refer to. It implements accounting.Known.
type known struct {
	*snapshot.Snapshot
	classes map[string]*resourceapi.DeviceClass
	steps   accounting.Steps
	probes  *probe.Selectors
}

// newKnown uses the classes of the snapshot. If the snapshot does not have a class that
// is installed with the driver, it uses the driver's.
func newKnown(objects *snapshot.Snapshot, installed []resourceapi.DeviceClass) known {
	k := known{objects, make(map[string]*resourceapi.DeviceClass), accounting.StepsOf(objects.Slices), probe.New()}
	for i := range installed {
		k.classes[installed[i].Name] = &installed[i]
	}
	for _, class := range objects.Classes {
		k.classes[class.Name] = class
	}
	return k
}

// DeviceClass returns a class by its name.
func (k known) DeviceClass(name string) *resourceapi.DeviceClass { return k.classes[name] }

// ResourceClaim returns a claim of the snapshot.
func (k known) ResourceClaim(namespace, name string) *resourceapi.ResourceClaim {
	return k.Claim(namespace, name)
}

// ResourceClaimTemplate returns a template of the snapshot.
func (k known) ResourceClaimTemplate(namespace, name string) *resourceapi.ResourceClaimTemplate {
	return k.Template(namespace, name)
}

// Steps returns the steps in which the zones of the snapshot give their capacities.
func (k known) Steps() accounting.Steps { return k.steps }

// Selectors evaluates selectors.
func (k known) Selectors() *probe.Selectors { return k.probes }

// check checks all objects that isAsked accepts. where is where an object is from.
func (f *findings) check(objects known, isAsked func(object metav1.Object, where string) bool, ignored []string) {
	linter := lint.New(objects)
	look := func(kind string, object metav1.Object, list func() []lint.Finding) {
		where := objects.Where(object)
		if !isAsked(object, where) {
			return
		}
		f.Looked++
		rest := slices.DeleteFunc(list(), func(finding lint.Finding) bool { return slices.Contains(ignored, finding.Rule) })
		if len(rest) > 0 {
			f.Objects = append(f.Objects, found{kind, object.GetNamespace(), object.GetName(), where, rest})
		}
	}
	for _, class := range objects.Classes {
		look("DeviceClass", class, func() []lint.Finding { return linter.Class(class) })
	}
	for _, template := range objects.Templates {
		look("ResourceClaimTemplate", template, func() []lint.Finding { return linter.Template(template) })
	}
	for _, claim := range objects.Claims {
		look("ResourceClaim", claim, func() []lint.Finding { return linter.Claim(claim) })
	}
	for _, workload := range objects.Workloads {
		if objects.MadeBy(workload) == nil { // else its template is that of the other workload
			look(workload.Kind, workload, func() []lint.Finding { return ofTemplates(linter, workload) })
		}
	}
	for _, pod := range objects.Pods {
		if !snapshot.Finished(pod) {
			look("Pod", pod, func() []lint.Finding { return linter.Pod(pod) })
		}
	}
}

// ofTemplates checks the pods of a workload. Its findings are about the fields of the
// workload.
func ofTemplates(linter *lint.Linter, workload *snapshot.Workload) (findings []lint.Finding) {
	for _, template := range workload.Templates {
		for _, finding := range linter.Pod(workload.Pod(template)) {
			finding.Field = template.Path + "." + finding.Field
			findings = append(findings, finding)
		}
	}
	return findings
}

// text returns a line for each object and, below it, a line for each finding. In the
// format wide, or sorted, each finding is a row of a table.
func (f *findings) text(s style) string {
	if s.wide || s.sortBy != "" {
		return f.table(s)
	}
	var b strings.Builder
	for _, object := range f.Objects {
		fmt.Fprintf(&b, "%s %s in %s\n", object.Kind, message.OneLine(object.key()), object.Where)
		for _, finding := range object.Findings {
			fmt.Fprintf(&b, "  %s: %s: %s (%s)\n", finding.Severity, message.OneLine(finding.Field), message.OneLine(finding.Message), finding.Rule)
		}
	}
	return b.String()
}

const lintColumns columns = "KIND,OBJECT,SEVERITY,RULE,FIELD,MESSAGE,WHERE"

func (f *findings) table(s style) string {
	if len(f.Objects) == 0 {
		return ""
	}
	rows := [][]string{lintColumns.headers()}
	for _, object := range f.Objects {
		for _, finding := range object.Findings {
			rows = append(rows, []string{object.Kind, object.key(), string(finding.Severity), finding.Rule, finding.Field, finding.Message, object.Where})
		}
	}
	return s.table(rows, 0)
}

// key returns namespace/name, or the name of an object without a namespace.
func (f *found) key() string { return strings.TrimPrefix(f.Namespace+"/"+f.Name, "/") }

// names returns the objects with findings.
func (f *findings) names() (names []objectName) {
	for _, object := range f.Objects {
		names = append(names, objectName{object.Kind, objectGroup(object.Kind), object.Namespace, object.Name})
	}
	return names
}

// objectGroup returns the API group of a kind of object that a snapshot holds.
func objectGroup(kind string) string {
	switch kind {
	case "JobSet":
		return "jobset.x-k8s.io"
	case "Pod", "ReplicationController":
		return ""
	case "DeviceClass", "ResourceClaim", "ResourceClaimTemplate":
		return resourceapi.GroupName
	}
	return workloadGroup(kind)
}

// verdict returns an error if there are findings.
func (f *findings) verdict() error {
	count := 0
	for _, object := range f.Objects {
		count += len(object.Findings)
	}
	if count == 0 {
		return nil
	}
	return &failure{fmt.Errorf("%d findings in %d of %d objects", count, len(f.Objects), f.Looked)}
}
