// Package message changes texts of other modules so that they fit into the errors and
// logs of this one. It knows no object and decides nothing.
package message

import "strings"

// OneLine replaces all white space, line breaks included, by single blanks. An error or a
// log line of this module is one line; messages of other modules often are not.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
