package canvas

import (
	"fmt"
	"strconv"
	"strings"
)

// units are the binary prefixes, starting with 2^10.
const units = "KMGTPE"

// PageSize returns a size as Kubernetes writes the sizes of hugepages: 2Mi for 2^21.
func PageSize(bytes uint64) string {
	unit := 0
	for bytes != 0 && bytes%1024 == 0 && unit < len(units) {
		bytes, unit = bytes/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatUint(bytes, 10)
	}
	return strconv.FormatUint(bytes, 10) + units[unit-1:unit] + "i"
}

// Joint is a space at which no line is broken. [Printable] replaces it with a space.
const Joint = "\u2060"

// Size returns a size such as 125 GiB or 1.5 GiB. It has at least two digits, and no
// zero after the point.
func Size(bytes uint64) string {
	amount, unit := float64(bytes), 0
	for amount >= 1024 && unit < len(units) {
		amount, unit = amount/1024, unit+1
	}
	digits := 1
	if amount >= 99.95 {
		digits = 0
	}
	text := strings.TrimSuffix(strconv.FormatFloat(amount, 'f', digits, 64), ".0")
	if unit == 0 {
		return text + Joint + "bytes"
	}
	return text + Joint + units[unit-1:unit] + "iB"
}

// Count returns "1 core" or "2 cores".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
