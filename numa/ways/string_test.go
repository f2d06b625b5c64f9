package ways

import (
	"fmt"
	"strings"
)

// String returns one line such as "a: 1c -> 7, b: 0 -> f8". A mark says which masks are
// temporary.
func (p Plan) String() string {
	var parts []string
	for _, w := range p {
		mark := ""
		if w.Temporary {
			mark = " (temporary)"
		}
		parts = append(parts, fmt.Sprintf("%s: %s -> %s%s", w.ID, w.From, w.To, mark))
	}
	return strings.Join(parts, ", ")
}
