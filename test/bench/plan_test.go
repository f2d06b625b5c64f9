package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

func TestTypicalLoadIsMeasured(t *testing.T) {
	for _, load := range measure.Loads() {
		if load == typical {
			return
		}
	}
	t.Errorf("%+v is not among the loads", typical)
}

// The page is written when all has been measured, and then needs the kinds.
func TestEveryComparisonHasAKind(t *testing.T) {
	for _, c := range comparisons() {
		if !slices.Contains([]string{page.Choice, page.Pair, page.Parts, page.OneFile}, c.Kind) {
			t.Errorf("%s is of the kind %q", c.Name, c.Kind)
		}
	}
}

func TestRecordedRatiosAreThoseOfTheShortRun(t *testing.T) {
	recorded, err := readJSON[map[string]float64](recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range smokeComparisons() {
		if recorded[c.Name] <= 0 {
			t.Errorf("no ratio of %q is recorded", c.Name)
		}
		delete(recorded, c.Name)
	}
	for name := range recorded {
		t.Errorf("%q is recorded and not measured", name)
	}
}

func TestKubeletIsOfTheVersionOfTheRig(t *testing.T) {
	version := regexp.MustCompile(`k8s.io/kubernetes (v\S+)`)
	var found []string
	for _, name := range []string{"go.mod", "../rig/go.mod"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		match := version.FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s: no version of k8s.io/kubernetes", name)
		}
		found = append(found, string(match[1]))
	}
	if found[0] != found[1] {
		t.Errorf("the kubelet is %s, the rig has %s", found[0], found[1])
	}
}
