package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// Versions that only their package knows are compared there.
func TestVersionsAreThoseOfTheCode(t *testing.T) {
	files.Contains(t, files.Read(t, root+"/docs/upgrading.md"),
		fmt.Sprintf("| document of `dra-numa state` | %d | %[1]d |", nodestate.Version),
		"| – | `"+deviceclasses.APIVersion+"` |")
}

// Each row of the table says what its reader does, in one of the words above the table.
func TestEachReaderDoesOneOfFourThings(t *testing.T) {
	_, section, _ := strings.Cut(files.Read(t, root+"/docs/upgrading.md"), "\n## Who reads what\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var words []string
	for _, match := range regexp.MustCompile(`(?m)^- \*\*(\w+)\*\*: `).FindAllStringSubmatch(section, -1) {
		words = append(words, match[1])
	}
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], " what, ") || strings.HasPrefix(cells[1], "---") {
			continue
		}
		rows++
		if word := regexp.MustCompile(`\w+`).FindString(cells[3]); !slices.Contains(words, word) {
			t.Errorf("%s: the cell %q begins with none of %s", strings.TrimSpace(cells[1]), cells[3], words)
		}
	}
	if len(words) != 4 || rows < 28 {
		t.Errorf("found %d words and %d rows", len(words), rows)
	}
}

// A file that is added to the driver's folder needs a row: what other builds do with it.
func TestEachFileOfADriverIsInTheTable(t *testing.T) {
	_, section, _ := strings.Cut(files.Read(t, root+"/docs/guarantees.md"), "\n## Files\n")
	table := files.Read(t, root+"/docs/upgrading.md")
	withoutFormat := []string{"stop-pinning", "pause-publishing", "instance.lock", "numa-pin"}
	named := regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(section, -1)
	for _, match := range named {
		if name := match[1]; !slices.Contains(withoutFormat, name) && !strings.Contains(table, "\n| `"+name+"`") {
			t.Errorf("docs/upgrading.md: no row of %s", name)
		}
	}
	if len(named) < 12 {
		t.Errorf("docs/guarantees.md names only %d files", len(named))
	}
}
