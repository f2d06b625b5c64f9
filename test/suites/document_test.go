package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const root = "../.."

func TestTableOfTheDocument(t *testing.T) {
	const path, begin, end = root + "/CONTRIBUTING.md", "<!-- table of test/suites -->\n", "<!-- end of table -->\n"
	before, rest, begins := strings.Cut(files.Read(t, path), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s lacks the marks of the table", path)
	}
	files.Golden(t, path, before+begin+readTable(t).document()+end+after)
}

func TestHelpHasEveryRow(t *testing.T) {
	read := readTable(t)
	var help strings.Builder
	read.help(&help)
	for _, name := range read.names() {
		if !strings.Contains(help.String(), "\n  "+name+" ") && !slices.Contains(internal, name) {
			t.Errorf("help lacks %s", name)
		}
	}
	for line := range strings.Lines(help.String()) {
		if strings.Contains(line, "](") || strings.Contains(line, "`") || strings.Contains(line, "{members}") {
			t.Errorf("help has what it should replace: %s", line)
		}
	}
}

// internal are targets that others need, and that nobody calls.
var internal = []string{"cc", "unit-tools", "npm", "qemu-user", "mmdebstrap", "suite", "devices-images", "upgrade-from", "upgrade-next", "upgrade-broken", "release-again"}

// make takes the names of suites and variables from lines of the table, with sed.
func TestTheMakefileHasWhatTheTableSays(t *testing.T) {
	read := readTable(t)
	makefile := files.Read(t, root+"/Makefile")
	var targets, want []string
	for _, match := range regexp.MustCompile(`(?m)^\.PHONY: ([a-z].*)$`).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, strings.Fields(match[1])...)
	}
	for _, target := range read.Targets {
		want = append(want, target.Name)
	}
	slices.Sort(targets)
	slices.Sort(want)
	if !slices.Equal(targets, want) {
		t.Errorf("the Makefile has the targets %s, the table %s", targets, want)
	}
	for pattern, count := range map[string]int{"- suite: ": len(read.Suites), "- variable: ": len(read.Variables)} {
		files.Contains(t, makefile, "$(shell sed -n 's/^"+pattern+"//p' test/suites/suites.yaml)\n")
		if got := strings.Count("\n"+string(file), "\n"+pattern); got != count {
			t.Errorf("%d lines begin with %q, want %d", got, pattern, count)
		}
	}
	// machine.readFlags has the same flags.
	files.Contains(t, makefile, "\nSTATIC   := CGO_ENABLED=0 GOFLAGS='$(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)'\n")
}

// What tests or measures is a row of the table, and not a target with a long recipe.
func TestTheMakefileIsSmall(t *testing.T) {
	const targets, lines = 30, 10
	makefile := files.Read(t, root+"/Makefile")
	if got := len(readTable(t).Targets); got > targets {
		t.Errorf("%d targets, allowed are %d", got, targets)
	}
	name, length := "", 0
	for line := range strings.Lines(makefile) {
		switch {
		case strings.HasPrefix(line, "\t"):
			length++
		case strings.HasPrefix(line, "  ") && length > 0: // of a canned recipe
			length++
		default:
			name, length = strings.TrimSpace(line), 0
		}
		if length > lines {
			t.Errorf("%s: a recipe has more than %d lines", name, lines)
			length = 0
		}
	}
}
