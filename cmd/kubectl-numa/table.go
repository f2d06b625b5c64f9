package main

import (
	"strings"
	"text/tabwriter"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// style says how tables are printed.
type style struct {
	wide      bool
	noHeaders bool
	sortBy    string // as of printer
}

// table aligns rows in columns. The first row is the header. Only wide tables have the
// last columns, as many as extra says.
func (s style) table(rows [][]string, extra int) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if s.wide {
		extra = 0
	}
	if s.sortBy != "" && len(rows) > 0 {
		sortRows(rows, s.sortBy)
	}
	if s.noHeaders && len(rows) > 0 {
		rows = rows[1:]
	}
	var cells []string
	for _, row := range rows {
		cells = cells[:0]
		for _, text := range row[:len(row)-extra] {
			cells = append(cells, message.OneLine(text)) // a text of an object must not begin a row
		}
		_, _ = w.Write([]byte(strings.Join(cells, "\t") + "\n")) // writing to a Builder never fails
	}
	_ = w.Flush()
	return trimLines(b.String())
}

// trimLines removes spaces at the ends of lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
