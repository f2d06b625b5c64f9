package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// help lists all targets, suites and variables that are said something about.
func (t table) help(w io.Writer) {
	fmt.Fprintln(w, "Targets:")
	for _, target := range t.Targets {
		helpRow(w, target.Name, target.about)
	}
	fmt.Fprintln(w, "\nTests and measurements, and how long they take on 2 cores:")
	for _, s := range t.Suites {
		helpRow(w, s.Name, s.said())
	}
	fmt.Fprintln(w, "\nVariables, such as make e2e KERNEL=7.2:")
	for _, v := range t.Variables {
		text := v.What
		if v.Default != "" {
			text += " (default: " + v.Default + ")"
		}
		helpRow(w, v.Name, about{What: text})
	}
}

// link matches a link of Markdown, of which help has the text only.
var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)

func helpRow(w io.Writer, name string, a about) {
	if a.What == "" {
		return
	}
	text := strings.ReplaceAll(link.ReplaceAllString(a.What, "$1"), "`", "")
	if takes, _, _ := strings.Cut(a.Takes, ";"); takes != "" {
		text += " (" + takes + ")"
	}
	fmt.Fprintf(w, "  %-18s %s\n", name, text)
}

// document is the table of CONTRIBUTING.md: what someone is to use who changes something.
func (t table) document() string {
	var out strings.Builder
	out.WriteString("| command | what it does | use it | takes, on 2 cores |\n|---|---|---|---|\n")
	row := func(name string, a about) {
		if a.Use != "" {
			fmt.Fprintf(&out, "| `make %s` | %s | %s | %s |\n", name, a.What, a.Use, or(a.Takes, "–"))
		}
	}
	for _, target := range t.Targets {
		row(target.Name, target.about)
	}
	for _, s := range t.Suites {
		row(s.Name, s.said())
	}
	return out.String()
}

// said is what is said of a suite, with the names of its members.
func (s suite) said() about {
	said := s.about
	said.What = strings.ReplaceAll(said.What, "{members}", strings.Join(s.Members, ", "))
	return said
}
