package page

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
)

// The pages of trials. Each says whether the other one was measured on the same machine.
const (
	scalePage  = "scale.md"
	growthPage = "scale-growth.md"
)

// relation is the line about the other page before it is known.
func relation(other string) string { return "\n" + link(other) + "was not measured.\n" }

func link(name string) string {
	titles := map[string]string{scalePage: "Scheduling at scale", growthPage: "Scheduling on 5,000 nodes"}
	return "[" + titles[name] + "](" + name + ") "
}

// write writes one of the pages. If the other one is there, both say whether they are from one
// machine.
func write(folder, name, text string, figures map[string]string) error {
	other := growthPage
	if name == growthPage {
		other = scalePage
	}
	path := filepath.Join(folder, other)
	before, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		text = relate(text, other, string(before))
		if err := os.WriteFile(path, []byte(relate(string(before), name, text)), 0o644); err != nil {
			return err
		}
	}
	return plot.WritePage(folder, name, text, figures)
}

// relate returns the text of a page with what is to be said of the other one.
func relate(text, other, otherText string) string {
	says := "was measured on this machine, too."
	if differ := difference(text, otherText); len(differ) > 0 {
		says = "was measured under other conditions (" + strings.Join(differ, ", ") + "): compare no times across the two pages."
	}
	line := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(link(other)) + "was .*$")
	return line.ReplaceAllLiteralString(text, link(other)+says)
}

// difference is which rows about the machine the pages do not share.
func difference(a, b string) (rows []string) {
	for _, row := range []string{"processor", "CPUs", "kernel", "Go", "priority", "Kubernetes"} {
		find := func(text string) string {
			lines := strings.Split(text, "\n")
			if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| "+row+" | ") }); i >= 0 {
				return lines[i]
			}
			return ""
		}
		if find(a) != find(b) {
			rows = append(rows, row)
		}
	}
	return rows
}
