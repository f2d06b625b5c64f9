// Package message changes texts of other modules so that they fit into the errors and
// logs of this module. It knows no objects and decides nothing.
package message

import "strings"

// OneLine replaces all white space, including line breaks, with single spaces. Each
// error and each log line of this module is one line. Messages of other modules often
// have several.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
