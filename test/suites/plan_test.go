package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The file has the commands of every suite, and what variables change.
func TestPlansOfAllSuites(t *testing.T) {
	read := readTable(t)
	var out strings.Builder
	for _, s := range read.Suites {
		variants := []map[string]string{nil}
		switch s.Name {
		case "e2e":
			variants = append(variants,
				map[string]string{"KERNEL": "7.2", "INIT": "systemd", "LABELS": "kernel", "CROWD": "100", "FOCUS": "'is repaired$'"},
				map[string]string{"TOPOLOGY": "x.yaml", "CROWD": "0", "SPEED": "50", "CRI": "crio", "NODES": "3", "BOOT": "a=1 b"})
		case "reach-two-nodes":
			variants = append(variants, map[string]string{"KUBERNETES": "1.36"})
		case "e2e-alerts":
			variants = append(variants, map[string]string{"FOCUS": "x"})
		case "upgrade-test":
			variants = append(variants, map[string]string{"FROM": "v0.1.0"})
		case "soak":
			variants = append(variants, map[string]string{"DURATION": "1h", "SEED": "5"})
		case "empty-debian":
			variants = append(variants, map[string]string{"TARGETS": "demo test"})
		case "scale":
			variants = append(variants, map[string]string{"SIZE": "5000", "ATTRIBUTES": "1,4"})
		}
		for _, given := range variants {
			words := []string{"make", s.Name}
			for _, name := range slices.Sorted(maps.Keys(given)) {
				words = append(words, name+"="+quoted(given[name]))
			}
			fmt.Fprintf(&out, "=== %s\n", strings.Join(words, " "))
			if len(s.Members) > 0 && s.Set == nil { // its members are in the file already
				fmt.Fprintf(&out, "%s\n\n", strings.Join(s.Members, " "))
				continue
			}
			if err := read.print(&out, s, newValues(read, given, nil)); err != nil {
				t.Error(err)
			}
			out.WriteString("\n")
		}
	}
	files.Golden(t, "testdata/plans.txt", out.String())
}
