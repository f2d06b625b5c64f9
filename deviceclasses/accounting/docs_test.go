package accounting

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The rows of the table in docs/accounting.md are correct.
func TestArithmeticOfTheDocs(t *testing.T) {
	page := files.Read(t, "../../docs/accounting.md")
	code := regexp.MustCompile("`([^`]*)`")
	texts := func(cell string) (list []string) {
		for _, match := range code.FindAllStringSubmatch(cell, -1) {
			list = append(list, match[1])
		}
		return list
	}
	rows := 0
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "uses=") {
			continue
		}
		rows++
		got := Mirror(podOf(texts(cells[1])...), sharesOf(texts(cells[2])...))
		want := append(texts(cells[3]), "")
		if requestsOf(got.Pod) != want[0] || Text(got.Short) != want[1] {
			t.Errorf("requests %q, short %q, the page says %s", requestsOf(got.Pod), Text(got.Short), line)
		}
	}
	if rows != 11 {
		t.Errorf("the page has %d rows", rows)
	}
}
