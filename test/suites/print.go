package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// printed answers as a shell would ask, to print plans.
type printed struct{}

func (printed) root() string              { return "$ROOT" }
func (printed) static() ([]string, error) { return []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"}, nil }
func (printed) helm() (string, error)     { return "$(helm)", nil }

func (printed) ofCluster(what, name string) (string, error) {
	return fmt.Sprintf("$(%s path -name %s %s)", cluster, name, what), nil
}

func (printed) packages(which string) ([]string, error) {
	if which != "plain" && which != "racy" {
		return nil, fmt.Errorf("{packages %s}: allowed are plain and racy", which)
	}
	return []string{"$(" + which + " packages)"}, nil
}

// print writes what a suite runs, in the notation of the shell.
func (t table) print(w io.Writer, s suite, v values) error {
	if len(s.Members) > 0 {
		return t.printGroup(w, s, v.within(s.Set))
	}
	p, err := t.plan(s, v, printed{})
	if err != nil {
		return err
	}
	var stop []step
	if !p.stays {
		for _, name := range p.clusters {
			stop = add(stop, step{"stop of the cluster", []command{down(name)}})
		}
	}
	for _, steps := range [][]step{{p.builds}, p.before, stop, p.steps, stop, p.after} {
		for _, step := range steps {
			if len(step.commands) > 0 {
				fmt.Fprintf(w, "# %s\n", step.name)
			}
			for _, c := range step.commands {
				fmt.Fprintln(w, c)
			}
		}
	}
	return nil
}

func (t table) printGroup(w io.Writer, s suite, v values) error {
	if len(s.Needs) > 0 {
		fmt.Fprintf(w, "# builds\n%s\n", makes(s.Needs, v.given))
	}
	if s.Beside != "" {
		fmt.Fprintf(w, "## %s, beside what follows\n", s.Beside)
	}
	for _, name := range slices.Concat(s.Members, s.Then) {
		fmt.Fprintf(w, "## %s\n", name)
		member, isSuite := t.suite(name)
		if !isSuite {
			fmt.Fprintln(w, makes([]string{name}, v.given))
			continue
		}
		if err := t.print(w, member, v); err != nil {
			return err
		}
	}
	return nil
}

// bare are the texts that a shell takes as they are, or replaces as we mean it.
var bare = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+{}-]+$|^\$\([a-z/ 0-9.-]+\)$`)

func quoted(text string) string {
	switch {
	case bare.MatchString(text):
		return text
	case strings.HasPrefix(text, "$ROOT/") || strings.HasPrefix(text, "$("):
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// String is the command in the notation of the shell.
func (c command) String() string {
	var words []string
	for _, assignment := range c.env {
		name, value, _ := strings.Cut(assignment, "=")
		words = append(words, name+"="+quoted(value))
	}
	for _, arg := range c.args {
		words = append(words, quoted(arg))
	}
	if c.input != "" {
		words = append(words, "<"+c.input)
	}
	text := strings.Join(words, " ")
	if c.in != "" {
		text = "(cd " + c.in + "; " + text + ")"
	}
	return text
}
