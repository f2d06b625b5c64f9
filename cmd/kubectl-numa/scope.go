package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// scope says which objects a command lists. The flags have the names and the meaning that
// they have in kubectl.
type scope struct {
	namespace string // "" if the user names none
	all       bool   // of all namespaces
	labels    selector
}

// addNamespacesTo adds the flags for namespaces to a command that lists the objects of
// all namespaces by default. what is the plural of the objects.
func (s *scope) addNamespacesTo(command *cobra.Command, what string) {
	s.addNamespaceTo(command, "`name` of the namespace whose "+what+" are listed (default: all); also that of objects in files that name none")
	s.addAllTo(command, "list the "+what+" of all namespaces, which is the default")
}

// addNamespaceTo adds the flag for one namespace.
func (s *scope) addNamespaceTo(command *cobra.Command, usage string) {
	command.Flags().StringVarP(&s.namespace, "namespace", "n", "", usage)
}

// addAllTo adds the flag for all namespaces, and refuses it together with one namespace.
func (s *scope) addAllTo(command *cobra.Command, usage string) {
	command.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, usage)
	addCheck(command, func() error {
		if s.all && s.namespace != "" {
			return fmt.Errorf("--namespace %s and --all-namespaces contradict each other: set only one of them", s.namespace)
		}
		return nil
	})
}

// addSelectorTo adds the flag for labels. what is the plural of the objects.
func (s *scope) addSelectorTo(command *cobra.Command, what string) {
	command.Flags().VarP(&s.labels, "selector", "l", "only "+what+" with these `labels`, such as pool=batch,tier!=test")
}

// has reports whether the command lists an object.
func (s *scope) has(object metav1.Object) bool {
	return (s.namespace == "" || object.GetNamespace() == s.namespace) && s.labels.matches(object)
}

// String says which objects these are, after their plural.
func (s *scope) String() string {
	var parts []string
	if s.namespace != "" {
		parts = append(parts, "in namespace "+s.namespace)
	}
	if s.labels.given() {
		parts = append(parts, fmt.Sprintf("with the labels %q", s.labels.text))
	}
	return strings.Join(parts, " ")
}

// oneNamespace refuses names of objects of several namespaces, unless the user asked for
// all namespaces: the names do not say in which namespace the objects are, and the command
// that gets them looks in one.
func (s *scope) oneNamespace(names []objectName) error {
	if s == nil || s.all {
		return nil
	}
	var namespaces []string
	for _, name := range append([]objectName{{namespace: s.namespace}}, names...) {
		if name.namespace != "" && !slices.Contains(namespaces, name.namespace) {
			namespaces = append(namespaces, name.namespace)
		}
	}
	if len(namespaces) < 2 {
		return nil
	}
	slices.Sort(namespaces)
	return fmt.Errorf("--output name shows no namespaces, but the objects are in %s: set another format, or --all-namespaces", strings.Join(namespaces, ", "))
}

// errLabelsOfOne is for a command that was given a name as well as labels.
var errLabelsOfOne = errors.New("--selector chooses among several objects: remove it, or the name")

// nodes returns whether the command is about a node: the named one or, without a name,
// those with the labels. If there is no such node, it returns an error, because "no
// problems" would be a wrong answer.
func (s *source) nodes(objects *snapshot.Snapshot, name string) (func(node string) bool, error) {
	switch {
	case name != "" && s.scope.labels.given():
		return nil, errLabelsOfOne
	case name != "" && objects.Node(name) == nil:
		return nil, fmt.Errorf("there is no Node %q in %s", name, s)
	case name != "":
		return func(node string) bool { return node == name }, nil
	case !s.scope.labels.given():
		return func(string) bool { return true }, nil
	}
	chosen := make(map[string]bool)
	for _, node := range objects.Nodes {
		if s.scope.labels.matches(node) {
			chosen[node.Name] = true
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no Node in %s has the labels %q", s, s.scope.labels.text)
	}
	return func(node string) bool { return chosen[node] }, nil
}

// selector is the value of the flag --selector. Its zero value matches everything.
type selector struct {
	text   string
	parsed labels.Selector
}

// String returns the text. With Set and Type, it makes selector the value of a flag.
func (s *selector) String() string { return s.text }

// Type returns what the value is.
func (s *selector) Type() string { return "labels" }

// Set reads the labels in the form that kubectl has.
func (s *selector) Set(text string) error {
	parsed, err := labels.Parse(text)
	if err != nil {
		return fmt.Errorf("want labels such as pool=batch,tier!=test: %w", err)
	}
	s.text, s.parsed = text, parsed
	return nil
}

func (s *selector) given() bool { return s.parsed != nil && !s.parsed.Empty() }

func (s *selector) matches(object metav1.Object) bool {
	return s.parsed == nil || s.parsed.Matches(labels.Set(object.GetLabels()))
}
