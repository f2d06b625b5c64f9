package main

import (
	"errors"
	"fmt"
	"strings"
)

// printFindings writes findings in the format that the user chose. A row has a cell for
// each column of the header. The first one is the node that the finding is about, or -.
// extra is the number of columns that only the wide format has.
func printFindings[F any](r *reading, kind string, findings []F, header columns, extra int, row func(F) []string) error {
	return r.print(document{
		what: "findings", kind: kind, value: itemList[F]{findings},
		text: func(s style) string {
			if len(findings) == 0 {
				return noProblems
			}
			rows := [][]string{header.headers()}
			for _, f := range findings {
				rows = append(rows, row(f))
			}
			return s.table(rows, extra)
		},
		names: func() []objectName {
			return nodesOf(findings, func(f F) string { return strings.TrimPrefix(row(f)[0], "-") })
		},
	})
}

// noProblems is what is printed instead of an empty table.
const noProblems = "no problems found\n"

// problemsError returns an error if there are problems.
func problemsError(count int) error {
	switch count {
	case 0:
		return nil
	case 1:
		return &failure{errors.New("found 1 problem")}
	}
	return &failure{fmt.Errorf("found %d problems", count)}
}
