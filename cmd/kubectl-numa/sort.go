package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// columns are the headers of a table, with commas between them.
type columns string

func (c columns) headers() []string { return strings.Split(string(c), ",") }

// names returns the columns as --sort-by has them, such as numa-node for NUMA NODE.
func (c columns) names() []string { return columns(columnName(string(c))).headers() }

func columnName(header string) string { return strings.ReplaceAll(strings.ToLower(header), " ", "-") }

// addSortTo adds the flag --sort-by to a command that lists rows. Other flags may decide
// which columns the rows have.
func (p *printer) addSortTo(command *cobra.Command, of func() columns) {
	command.Flags().StringVar(&p.sortBy, "sort-by", "", "`column` of the table by which its rows are sorted: "+strings.Join(of().names(), ", "))
	complete(command, "sort-by", func(*cobra.Command) []string { return of().names() })
	addCheck(command, func() error {
		switch {
		case !command.Flags().Changed("sort-by"):
			return nil
		case p.format != formatTable && p.format != formatWide:
			return fmt.Errorf("--sort-by %s: only tables have columns, want no --output %s", p.sortBy, p.format)
		case !slices.Contains(of().names(), p.sortBy):
			return fmt.Errorf("--sort-by %q: allowed are %s", p.sortBy, strings.Join(of().names(), ", "))
		}
		return nil
	})
}

// sortRows sorts the rows below the header by a column that the header has. Rows with equal
// cells stay in their order.
func sortRows(rows [][]string, by string) {
	at := slices.IndexFunc(rows[0], func(header string) bool { return columnName(header) == by })
	slices.SortStableFunc(rows[1:], func(a, b []string) int { return compareCells(a[at], b[at]) })
}

// compareCells compares two cells word by word.
func compareCells(a, b string) int {
	return slices.CompareFunc(cellWords(a), cellWords(b), compareWords)
}

// cellWords returns the words of a cell. An amount is one word, as in Kubernetes: 2 GiB is 2Gi.
// The ids of a list of CPUs are words.
func cellWords(cell string) (list []string) {
	cell = strings.NewReplacer(" KiB", "Ki", " MiB", "Mi", " GiB", "Gi", " TiB", "Ti").Replace(cell)
	for _, word := range strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(" ,/", r) }) {
		if strings.Trim(word, "0123456789-") == "" {
			list = append(list, strings.Split(word, "-")...)
		} else {
			list = append(list, word)
		}
	}
	return list
}

// amountOf reads an amount that can be compared: a pod can have the name 1e300000000.
func amountOf(word string) (resource.Quantity, bool) {
	amount, err := resource.ParseQuantity(word)
	return amount, err == nil && spelling.Countable(amount)
}

// compareWords compares amounts by their size, and names that end with a number, such as
// worker-2 and worker-10, by this number. Amounts come before other words, such as the -
// of an amount that there is not.
func compareWords(a, b string) int {
	x, isX := amountOf(a)
	y, isY := amountOf(b)
	switch {
	case isX && isY:
		return x.Cmp(y)
	case isX:
		return -1
	case isY:
		return 1
	}
	const digits = "0123456789"
	return cmp.Or(
		strings.Compare(strings.TrimRight(a, digits), strings.TrimRight(b, digits)),
		cmp.Compare(len(a), len(b)), // the shorter number is smaller: ids have no zeros before them
		strings.Compare(a, b),
	)
}
