// Package pciname has the names of PCI vendors and products. The table is compiled in:
// all programs have the same names on every system, and read no file of the host. The
// names are for people: no decision depends on them.
package pciname

import (
	_ "embed" // for the table
	"fmt"
	"sort"
	"strings"
)

// table has a line "8086<TAB>name" for each vendor and "8086<HEX OF DEVICE><TAB>name" for
// each product, sorted. Lines of its head begin with #. Its head says where the names come
// from and how to update them.
//
//go:embed names.txt
var table string

// Lookup returns the names of a vendor and of its product, as the PCI ID database spells
// them. They may contain any characters. A name is "" if the table does not have it.
func Lookup(vendor, device uint16) (vendorName, product string) {
	return find(fmt.Sprintf("%04x\t", vendor)), find(fmt.Sprintf("%04x%04x\t", vendor, device))
}

// find returns what follows the key in its line. It looks for the first byte of which the
// line is not below the key: that is where the line of the key begins.
func find(key string) string {
	at := sort.Search(len(table), func(i int) bool {
		return table[strings.LastIndexByte(table[:i], '\n')+1:] >= key
	})
	rest, _ := strings.CutPrefix(table[at:], key)
	if len(rest) == len(table)-at {
		return ""
	}
	name, _, _ := strings.Cut(rest, "\n")
	return name
}
