package main

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// values are what the variables of the table have for a suite. What is given on the command
// line is before what the suite sets, then come the groups around it, from the inside to the
// outside, the environment, and the default.
type values struct {
	given map[string]string
	other map[string]string // all variables, without what is given and what suites set
	set   map[string]string
	// every makes every condition hold, to check a table.
	every bool
}

// newValues returns the values outside of any suite. An empty variable of the environment is
// none.
func newValues(t table, given map[string]string, env func(string) string) values {
	other := map[string]string{}
	for _, v := range t.Variables {
		other[v.Name] = v.Default
		if env != nil && env(v.Name) != "" {
			other[v.Name] = env(v.Name)
		}
	}
	return values{given: given, other: other}
}

// within returns the values for a suite that sets some, inside of those that v is for.
func (v values) within(set map[string]string) values {
	merged := maps.Clone(v.set)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, set)
	return values{given: v.given, other: v.other, set: merged, every: v.every}
}

func (v values) of(name string) (string, bool) {
	for _, from := range []map[string]string{v.given, v.set, v.other} {
		if value, found := from[name]; found {
			return value, true
		}
	}
	return "", false
}

func (v values) hold(c condition) bool {
	if v.every {
		return true
	}
	for name, want := range c.If {
		if got, _ := v.of(name); got != want {
			return false
		}
	}
	for name, not := range c.Unless {
		if got, _ := v.of(name); got == not {
			return false
		}
	}
	return true
}

// host answers what a plan has to ask of the machine. Paths are absolute.
type host interface {
	root() string
	static() ([]string, error)                   // environment of what is built, but for the race detector
	helm() (string, error)                       // path of the program
	ofCluster(what, name string) (string, error) // kubeconfig or logs
	packages(which string) ([]string, error)     // plain or racy
}

// word matches what a text of the table may have: {root}, {helm}, {kubeconfig NAME} and
// {logs NAME}; $NAME for a variable; ${NAME:+text} for a text if the variable is not empty.
var word = regexp.MustCompile(`\{(root|helm|kubeconfig|logs)(?: ([a-z-]+))?\}|\$\{([A-Z]+):\+([^}]*)\}|\$([A-Z]+)`)

// texts expands texts of the table. Values are not expanded again.
type texts struct {
	values
	host
	cluster string // without a name, {kubeconfig} and {logs} are of this one
}

func (x texts) expand(text string) (string, error) {
	var failed error
	replaced := word.ReplaceAllStringFunc(text, func(match string) string {
		groups := word.FindStringSubmatch(match)
		value, err := x.word(groups)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%q: %w", text, err)
		}
		return value
	})
	return replaced, failed
}

func (x texts) word(groups []string) (string, error) {
	question, cluster, asked, then, name := groups[1], groups[2], groups[3], groups[4], groups[5]
	switch {
	case question == "root":
		return x.root(), nil
	case question == "helm":
		return x.helm()
	case question != "":
		if cluster == "" {
			cluster = x.cluster
		}
		return x.ofCluster(question, cluster)
	case asked != "":
		if value, found := x.of(asked); !found {
			return "", fmt.Errorf("no variable %q", asked)
		} else if value == "" && !x.every {
			return "", nil
		}
		return x.expand(then)
	}
	value, found := x.of(name)
	if !found {
		return "", fmt.Errorf("no variable %q", name)
	}
	return value, nil
}

// all expands a list. {packages plain} and {packages racy} become several texts, $NAME... one
// for each word of the variable, and ${NAME:+text} none if the variable is empty.
func (x texts) all(list []string) (expanded []string, err error) {
	for _, text := range list {
		if which, isPackages := strings.CutPrefix(text, "{packages "); isPackages {
			packages, err := x.packages(strings.TrimSuffix(which, "}"))
			if err != nil {
				return nil, err
			}
			expanded = append(expanded, packages...)
			continue
		}
		words, several := strings.CutSuffix(text, "...")
		several = several && strings.HasPrefix(text, "$")
		if several {
			text = words
		}
		value, err := x.expand(text)
		switch {
		case err != nil:
			return nil, err
		case several:
			expanded = append(expanded, strings.Fields(value)...)
		case value == "" && strings.HasPrefix(text, "${"):
		default:
			expanded = append(expanded, value)
		}
	}
	return expanded, nil
}
