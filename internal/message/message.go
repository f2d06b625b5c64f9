// Package message changes texts of other modules, and long lists, so that they fit into
// the errors and logs of this module. It knows no objects and decides nothing.
package message

import (
	"fmt"
	"strings"
)

// OneLine replaces all white space, including line breaks, with single spaces. Each
// error and each log line of this module is one line. Messages of other modules often
// have several.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// First lists the first names of a list, and says how many more there are.
func First(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Short returns a text of at most this many bytes. Of a longer text, it returns the
// beginning and the end. A text that quotes what users write can have any length.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const between = " ... "
	part := (most - len(between)) / 2
	return strings.ToValidUTF8(text[:part], "") + between + strings.ToValidUTF8(text[len(text)-part:], "")
}
