package zones

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The page has a row for each attribute, which says never where no zone is without it.
func TestEveryAttributeIsDocumented(t *testing.T) {
	page := files.Read(t, "../../docs/zones.md")
	rows := make(map[string]string)
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) == 7 {
			rows[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[4])
		}
	}
	for _, attribute := range Attributes() {
		absent, has := rows[string(attribute.Name)]
		if !has || (absent == "never") != (attribute.Absent == "") {
			t.Errorf("docs/zones.md: %s has a row: %t, absent %q, want %q", attribute.Name, has, absent, attribute.Absent)
		}
	}
	for _, word := range []string{deviceclasses.FaultPartitionInvalid, string(deviceclasses.CapacityCPU), string(deviceclasses.CapacityMemory), deviceclasses.CapacityHugepagesPrefix} {
		if !strings.Contains(page, word) {
			t.Errorf("docs/zones.md does not name %q", word)
		}
	}
}
