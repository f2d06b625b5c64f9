package plot

import (
	"fmt"
	"strings"
)

// Table returns a table in Markdown.
func Table(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(header)
	line(strings.Split(strings.Repeat("---,", len(header)-1)+"---", ","))
	for _, row := range rows {
		line(row)
	}
	return b.String()
}
