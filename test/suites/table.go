package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// file is the table; its comments say what each field means.
//
//go:embed suites.yaml
var file []byte

// table is what make can run: every target and suite, and the variables that change them.
type table struct {
	Variables []variable `json:"variables"`
	Targets   []target   `json:"targets"`
	Suites    []suite    `json:"suites"`
}

// about is what help and CONTRIBUTING.md say of a target or suite.
type about struct {
	What  string `json:"what,omitempty"`  // it does
	Use   string `json:"use,omitempty"`   // when to run it
	Takes string `json:"takes,omitempty"` // measured, on 2 cores
}

type variable struct {
	Name    string `json:"variable"`
	What    string `json:"what"`
	Default string `json:"default,omitempty"`
}

// target is a target that the Makefile itself has.
type target struct {
	Name string `json:"target"`
	about
}

// suite is a row of the table: a group of other rows and targets, or commands with or
// without clusters.
type suite struct {
	Name string `json:"suite"`
	about
	Like   string            `json:"like,omitempty"`
	Set    map[string]string `json:"set,omitempty"`
	Needs  []string          `json:"needs,omitempty"`
	Memory bool              `json:"memory,omitempty"`

	Members []string `json:"members,omitempty"`
	Beside  string   `json:"beside,omitempty"`
	Then    []string `json:"then,omitempty"`

	Cluster       string         `json:"cluster,omitempty"`
	Stays         bool           `json:"stays,omitempty"`
	Gates         []gate         `json:"gates,omitempty"`
	ControlPlanes []controlPlane `json:"controlPlanes,omitempty"`
	Stops         []string       `json:"stops,omitempty"`
	Images        []string       `json:"images,omitempty"`
	InNode        []inNode       `json:"inNode,omitempty"`
	Chart         *chart         `json:"chart,omitempty"`
	Focus         bool           `json:"focus,omitempty"`
	MaySkip       bool           `json:"maySkip,omitempty"`
	Flags         []string       `json:"flags,omitempty"`
	Steps         []specs        `json:"steps,omitempty"`

	Before []run `json:"before,omitempty"`
	Run    []run `json:"run,omitempty"`
	After  []run `json:"after,omitempty"`
}

// condition holds if each variable of If has its value, and none of Unless has.
type condition struct {
	If     map[string]string `json:"if,omitempty"`
	Unless map[string]string `json:"unless,omitempty"`
}

type gate struct {
	condition
	Gate string `json:"gate"` // name=true or name=false
}

type controlPlane struct {
	Name string `json:"name"`
	Gate string `json:"gate,omitempty"`
}

type inNode struct {
	condition
	Package string            `json:"package"`
	Env     map[string]string `json:"env,omitempty"`
}

type chart struct {
	Namespace string   `json:"namespace,omitempty"`
	Folder    string   `json:"folder,omitempty"`
	Tag       string   `json:"tag,omitempty"`
	Values    []string `json:"values,omitempty"`
}

type specs struct {
	condition
	Label string   `json:"label,omitempty"`
	Tag   string   `json:"tag,omitempty"`
	Flags []string `json:"flags,omitempty"`
}

type run struct {
	condition
	Name string            `json:"name,omitempty"` // in the list of times
	Race bool              `json:"race,omitempty"`
	In   string            `json:"in,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
	Args []string          `json:"args"`
}

// parse reads a table. An error names the suite and the field.
func parse(text []byte) (table, error) {
	var rows struct {
		Variables []variable       `json:"variables"`
		Targets   []target         `json:"targets"`
		Suites    []map[string]any `json:"suites"`
	}
	if err := yaml.UnmarshalStrict(text, &rows); err != nil {
		return table{}, fmt.Errorf("suites.yaml: %w", err)
	}
	t := table{Variables: rows.Variables, Targets: rows.Targets}
	known := map[string]map[string]any{}
	for i, row := range rows.Suites {
		name, _ := row["suite"].(string)
		if name == "" {
			return table{}, fmt.Errorf("suites.yaml: suite %d has no name in the field suite", i+1)
		}
		row, err := extended(row, known)
		if err != nil {
			return table{}, fmt.Errorf("suites.yaml: suite %s: %w", name, err)
		}
		known[name] = row
		text, err := yaml.Marshal(row)
		if err != nil {
			return table{}, fmt.Errorf("suites.yaml: suite %s: %w", name, err)
		}
		var s suite
		if err := yaml.UnmarshalStrict(text, &s); err != nil {
			return table{}, fmt.Errorf("suites.yaml: suite %s: %w", name, err)
		}
		t.Suites = append(t.Suites, s)
	}
	return t, t.check()
}

// extended returns a row with the fields that it lacks from the row that it is like, which
// must come before it. What is said of that row is not said of this one.
func extended(row map[string]any, known map[string]map[string]any) (map[string]any, error) {
	like, isLike := row["like"]
	if !isLike {
		return row, nil
	}
	name, _ := like.(string)
	base := known[name]
	if base == nil {
		return nil, fmt.Errorf("field like: no suite %q is above it", like)
	}
	all := maps.Clone(base)
	for _, own := range []string{"what", "use", "takes"} {
		delete(all, own)
	}
	maps.Copy(all, row)
	if set, both := base["set"].(map[string]any); both {
		merged := maps.Clone(set)
		if own, has := row["set"].(map[string]any); has {
			maps.Copy(merged, own)
		}
		all["set"] = merged
	}
	return all, nil
}

// suite returns the row of a name.
func (t table) suite(name string) (suite, bool) {
	i := slices.IndexFunc(t.Suites, func(s suite) bool { return s.Name == name })
	if i < 0 {
		return suite{}, false
	}
	return t.Suites[i], true
}

func (t table) hasTarget(name string) bool {
	return slices.ContainsFunc(t.Targets, func(other target) bool { return other.Name == name })
}

func (t table) hasVariable(name string) bool {
	return slices.ContainsFunc(t.Variables, func(v variable) bool { return v.Name == name })
}
