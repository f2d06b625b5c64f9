package main

import (
	"strings"
	"testing"
)

func readTable(t *testing.T) table {
	t.Helper()
	read, err := parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestMistakesNameSuiteAndField(t *testing.T) {
	const head = "variables:\n- {variable: KERNEL, what: w}\ntargets:\n- {target: image, what: w}\nsuites:\n"
	const good = "- {suite: good, what: w, run: [{args: [a]}]}\n"
	if _, err := parse([]byte(head + good)); err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[string]string{
		"- {suite: s, what: w, kernl: x}":                                           `suite s: error unmarshaling JSON: while decoding JSON: json: unknown field "kernl"`,
		"- {what: w}":                                                               "suite 1 has no name",
		"- {suite: s, run: [{args: [a]}]}":                                          "suite s: field what is empty",
		"- {suite: s, what: w}":                                                     "suite s: nothing runs",
		"- {suite: s, what: w, run: [{args: []}]}":                                  "suite s: field run: a command has no args",
		"- {suite: s, what: w, like: other}":                                        `suite s: field like: no suite "other" is above it`,
		"- {suite: s, what: w, run: [{args: [a]}], set: {KERNAL: x}}":               `suite s: field set: no variable "KERNAL"`,
		"- {suite: s, what: w, run: [{args: [a], if: {KERNAL: x}}]}":                `suite s: field run: no variable "KERNAL"`,
		"- {suite: s, what: w, run: [{args: [$KERNAL]}]}":                           `suite s: "$KERNAL": no variable "KERNAL"`,
		"- {suite: s, what: w, run: [{args: [$KERNAL], if: {KERNEL: x}}]}":          `suite s: "$KERNAL": no variable "KERNAL"`,
		"- {suite: s, what: w, run: [{args: ['${KERNEL:+$KERNAL}']}]}":              `suite s: "${KERNEL:+$KERNAL}": "$KERNAL": no variable "KERNAL"`,
		"- {suite: s, what: w, run: [{args: ['{packages all}']}]}":                  "suite s: {packages all}: allowed are plain and racy",
		"- {suite: s, what: w, run: [{args: [a]}], needs: [imag]}":                  `suite s: field needs: the Makefile has no target "imag"`,
		"- {suite: s, what: w, run: [{args: [a]}], images: [x]}":                    "suite s: field cluster is empty",
		"- {suite: s, what: w, cluster: c, steps: [{label: l}]}":                    "suite s: field steps: specs need the driver",
		"- {suite: s, what: w, members: [nothing]}":                                 `suite s: fields members and then: it is no target, and no suite above it: "nothing"`,
		"- {suite: s, what: w, members: [image], run: [{args: [a]}]}":               "suite s: field members: a group has nothing else that runs",
		"- {suite: s, what: w, members: [image], beside: image}":                    `suite s: field beside: it is no suite above it: "image"`,
		"- {suite: s, what: w, run: [{args: [a]}], then: [image]}":                  "suite s: fields beside and then: only a group has them",
		"- {suite: s, what: w, members: [s]}":                                       `suite s: fields members and then: it is no target, and no suite above it: "s"`,
		"- {suite: image, what: w, run: [{args: [a]}]}":                             "image is in it twice",
		"- {suite: s, what: w, run: [{args: [a]}]}\n- {suite: s, what: w, like: s}": "s is in it twice",
	} {
		_, err := parse([]byte(head + rows + "\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "suites.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rows, err, want)
		}
	}
}

// What the command line has is before what a suite sets, then come groups, the environment
// and the default.
func TestWhereAValueComesFrom(t *testing.T) {
	read := readTable(t)
	environment := func(name string) string {
		return map[string]string{"KERNEL": "env", "INIT": "env", "CRI": "env", "NODES": "env"}[name]
	}
	v := newValues(read, map[string]string{"KERNEL": "given", "BOOT": ""}, environment)
	v = v.within(map[string]string{"KERNEL": "group", "INIT": "group", "CRI": "group"}).within(map[string]string{"KERNEL": "suite", "INIT": "suite", "BOOT": "suite"})
	for name, want := range map[string]string{"KERNEL": "given", "BOOT": "", "INIT": "suite", "CRI": "group", "NODES": "env", "SPEED": "100"} {
		if got, found := v.of(name); got != want || !found {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// The value of a variable is taken as it is, whatever it looks like.
func TestValuesAreNotExpanded(t *testing.T) {
	v := newValues(readTable(t), map[string]string{"FOCUS": "{helm} $KERNEL ${BOOT:+x}", "SIZE": "1 2"}, nil)
	got, err := texts{values: v, host: printed{}}.all([]string{"$FOCUS", "a${FOCUS:+ and $FOCUS}", "${BOOT:+gone}", "$BOOT", "$SIZE...", "./..."})
	want := []string{"{helm} $KERNEL ${BOOT:+x}", "a and {helm} $KERNEL ${BOOT:+x}", "", "1", "2", "./..."}
	if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("expanded to %q, %v, want %q", got, err, want)
	}
	if _, err := readTable(t).given([]string{"KERNAL=7.2"}); err == nil || !strings.Contains(err.Error(), "KERNAL=7.2: no such variable") {
		t.Errorf("a misspelt variable: %v", err)
	}
}
