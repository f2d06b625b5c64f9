package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// check returns every mistake of the table that decoding does not find.
func (t table) check() error {
	var errs []error
	seen := map[string]bool{}
	for _, name := range t.names() {
		if seen[name] {
			errs = append(errs, fmt.Errorf("suites.yaml: %s is in it twice", name))
		}
		seen[name] = true
	}
	for _, s := range t.Suites {
		for _, err := range t.mistakes(s) {
			errs = append(errs, fmt.Errorf("suites.yaml: suite %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// names are those of all rows.
func (t table) names() (names []string) {
	for _, v := range t.Variables {
		names = append(names, v.Name)
	}
	for _, target := range t.Targets {
		names = append(names, target.Name)
	}
	for _, s := range t.Suites {
		names = append(names, s.Name)
	}
	return names
}

func (t table) mistakes(s suite) (errs []error) {
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.What == "" {
		say("field what is empty")
	}
	group, nodes := len(s.Members) > 0, s.Cluster != ""
	switch {
	case group && (nodes || len(s.Run) > 0 || len(s.Stops) > 0 || len(s.ControlPlanes) > 0):
		say("field members: a group has nothing else that runs")
	case !group && (s.Beside != "" || len(s.Then) > 0):
		say("fields beside and then: only a group has them")
	case !group && !nodes && len(s.Run) == 0:
		say("nothing runs: it has none of the fields members, cluster and run")
	}
	if !nodes && (len(s.Images) > 0 || len(s.InNode) > 0 || s.Chart != nil || len(s.Steps) > 0 || len(s.Gates) > 0 || s.Stays) {
		say("field cluster is empty, but others need a cluster")
	}
	if len(s.Steps) > 0 && s.Chart == nil {
		say("field steps: specs need the driver, and the field chart is missing")
	}
	for _, name := range s.Needs {
		if !t.hasTarget(name) {
			say("field needs: the Makefile has no target %q", name)
		}
	}
	above := table{Suites: t.Suites[:slices.IndexFunc(t.Suites, func(other suite) bool { return other.Name == s.Name })]}
	for _, name := range slices.Concat(s.Members, s.Then) {
		if _, found := above.suite(name); !found && !t.hasTarget(name) {
			say("fields members and then: it is no target, and no suite above it: %q", name)
		}
	}
	if _, found := above.suite(s.Beside); s.Beside != "" && !found {
		say("field beside: it is no suite above it: %q", s.Beside)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Set)) {
		if !t.hasVariable(name) {
			say("field set: no variable %q", name)
		}
	}
	for field, conditions := range s.conditions() {
		for _, c := range conditions {
			for _, name := range slices.Concat(slices.Sorted(maps.Keys(c.If)), slices.Sorted(maps.Keys(c.Unless))) {
				if !t.hasVariable(name) {
					say("field %s: no variable %q", field, name)
				}
			}
		}
	}
	for field, runs := range s.runs() {
		for _, r := range runs {
			if len(r.Args) == 0 {
				say("field %s: a command has no args", field)
			}
		}
	}
	// A plan of a row fails for every word in its texts that means nothing.
	v := newValues(t, nil, nil)
	v.every = true
	if _, err := t.plan(s, v, printed{}); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// conditions are those of a row, by field.
func (s suite) conditions() map[string][]condition {
	all := map[string][]condition{}
	for _, g := range s.Gates {
		all["gates"] = append(all["gates"], g.condition)
	}
	for _, n := range s.InNode {
		all["inNode"] = append(all["inNode"], n.condition)
	}
	for _, step := range s.Steps {
		all["steps"] = append(all["steps"], step.condition)
	}
	for field, runs := range s.runs() {
		for _, r := range runs {
			all[field] = append(all[field], r.condition)
		}
	}
	return all
}

// runs are the commands of a row, by field.
func (s suite) runs() map[string][]run {
	return map[string][]run{"before": s.Before, "run": s.Run, "after": s.After}
}
