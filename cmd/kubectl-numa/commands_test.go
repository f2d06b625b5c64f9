package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The page lists the rows of the table.
func TestPageListsTheCommands(t *testing.T) {
	const page, begin, end = "../../docs/kubectl-numa.md", "<!-- commands -->\n", "<!-- end of commands -->\n"
	var list strings.Builder
	list.WriteString("| command | what it does |\n|---|---|\n")
	for _, section := range table() {
		for _, r := range section.rows {
			for _, command := range append([]row{r}, r.rows...) {
				if command.set == nil {
					continue
				}
				name, more := command.name, ""
				if len(r.rows) > 0 {
					name = r.name + " " + name
				}
				if command.page != "" {
					more = fmt.Sprintf(" ([more](%s))", command.page)
				}
				fmt.Fprintf(&list, "| `kubectl numa %s` | %s%s |\n", strings.NewReplacer("|", `\|`, " [flags]", "").Replace(strings.TrimSpace(name+" "+command.args)), command.meaning, more)
			}
		}
	}
	head, rest, found := strings.Cut(testfiles.Read(t, page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the commands", page)
	}
	testfiles.Golden(t, page, head+begin+list.String()+end+tail)
}

// Pages draw machines as the command does.
func TestPagesHaveTheDrawingsOfTopology(t *testing.T) {
	for _, row := range []struct{ page, line, preset string }{
		{"README.md", "go run ./cmd/kubectl-numa topology --preset rig", "rig"},
		{"docs/kubectl-numa.md", "kubectl numa topology --root /tmp/machine", "no-numa"},
	} {
		_, block, found := strings.Cut(testfiles.Read(t, "../../"+row.page), "```\n$ "+row.line+"\n")
		block, _, _ = strings.Cut(block, "```")
		if want := mustCall(t, "topology", "--preset", row.preset); !found || !strings.HasPrefix(want, strings.TrimSuffix(block, "...\n")) {
			t.Errorf("%s: %s has\n%s\nwant the beginning of\n%s", row.page, row.line, block, want)
		}
	}
}

// The files of the folder help are those of the commands.
func TestEveryHelpIsOfACommand(t *testing.T) {
	files, err := os.ReadDir("help")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		path := strings.TrimSuffix(file.Name(), ".txt")
		found := false
		for _, section := range table() {
			for _, r := range section.rows {
				found = found || path == r.name
				for _, child := range r.rows {
					found = found || path == r.name+"-"+child.name
				}
			}
		}
		if !found {
			t.Errorf("no command has the help in %s", file.Name())
		}
	}
}
