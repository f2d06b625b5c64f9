package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

const (
	// componentLabel is the label that kubeadm gives the static pods of a control plane, with
	// the name of the program.
	componentLabel  = "component"
	schedulerName   = "kube-scheduler"
	controllersName = "kube-controller-manager"
	gatesFlag       = "--feature-gates"
)

// GateArguments returns the arguments that set feature gates, of a container of the
// control plane. It returns nothing for containers of other pods. A bundle keeps these
// arguments only.
func GateArguments(pod *corev1.Pod, container *corev1.Container) (arguments []string) {
	// Tenants cannot create pods in kube-system.
	if pod.Namespace != metav1.NamespaceSystem || !slices.Contains([]string{schedulerName, controllersName}, pod.Labels[componentLabel]) {
		return nil
	}
	words := slices.Concat(container.Command, container.Args)
	for i, word := range words {
		value, joined := strings.CutPrefix(word, gatesFlag+"=")
		if word == gatesFlag && i+1 < len(words) {
			value, joined = words[i+1], true
		}
		if joined {
			arguments = append(arguments, gatesFlag+"="+value)
		}
	}
	return arguments
}

// program is a program of the control plane whose pod can be seen.
type program struct {
	component string
	pod       string
	gates     map[string]bool // those that its arguments set
}

// programs returns the schedulers, or the controllers, whose pods can be seen. Their
// arguments are the only place where their gates can be read: the API server does not
// forward their metrics.
func (f *Facts) programs(component string) (list []program) {
	for _, pod := range f.Objects.Pods {
		if pod.Namespace != metav1.NamespaceSystem || pod.Labels[componentLabel] != component || snapshot.Finished(pod) {
			continue
		}
		found := program{component, pod.Name, make(map[string]bool)}
		for i := range pod.Spec.Containers {
			for _, argument := range GateArguments(pod, &pod.Spec.Containers[i]) {
				found.set(strings.TrimPrefix(argument, gatesFlag+"="))
			}
		}
		list = append(list, found)
	}
	return list
}

// set reads gates in the form of the flag: A=true,kube:B=false.
func (p program) set(gates string) {
	for gate := range strings.SplitSeq(gates, ",") {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(gate), "kube:"), "=")
		if on, err := strconv.ParseBool(value); err == nil {
			p.gates[name] = on
		}
	}
}

// gate reports whether a program of that version has the gate on.
func (p program) gate(name, version string) bool {
	if on, set := p.gates[name]; set {
		return on
	}
	switch name {
	case countingGate, listsGate:
		return p.gates["AllAlpha"]
	case rulesGate:
		return !older(version, "1.37.0")
	}
	return true
}

// needs reports whether the program needs the gate.
func (p program) needs(g gated) bool {
	if p.component == schedulerName {
		return g.scheduler
	}
	return g.controllers
}

// SchedulerVisible reports whether the feature gates of the scheduler can be seen. If not,
// they are assumed to be those of the API server.
func (f *Facts) SchedulerVisible() bool { return len(f.programs(schedulerName)) > 0 }

// controlPlaneGates finds gates that the scheduler or the controllers have other than the
// API server.
func controlPlaneGates(f *Facts) (findings []Finding) {
	for _, p := range append(f.programs(schedulerName), f.programs(controllersName)...) {
		for _, g := range gatedFeatures() {
			want, known := f.Gates[g.gate]
			got := p.gate(g.gate, f.Version)
			if !p.needs(g) || !known || got == want {
				continue
			}
			detected := strconv.FormatBool(got)
			if _, set := p.gates[g.gate]; !set {
				detected = "not set, so " + detected
			}
			findings = append(findings, Finding{
				Component: "Pod " + metav1.NamespaceSystem + "/" + p.pod, Setting: g.gate,
				Expected: fmt.Sprintf("%t, as in the API server", want), Detected: detected,
			})
		}
	}
	return findings
}
