package pin

import (
	"fmt"
	"strings"
)

// String prints one line for each write: file <- value.
func (p Plan) String() string {
	var b strings.Builder
	for _, w := range p.Writes {
		fmt.Fprintf(&b, "%s <- %s\n", w.File, w.Value)
	}
	return b.String()
}
