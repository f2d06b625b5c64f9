package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The pages have the table of attributes. Columns of a page that the table lacks stay as
// they are.
func TestPagesHaveTheTableOfAttributes(t *testing.T) {
	for page, rows := range map[string][]deviceclasses.AttributeRow{
		"zones.md": deviceclasses.ZoneAttributes(), "cache.md": deviceclasses.CacheAttributes(), "devices.md": deviceclasses.FunctionAttributes(),
	} {
		path := root + "/docs/" + page
		text := files.Read(t, path)
		start := strings.Index(text, "\n| attribute |") + 1
		table, _, _ := strings.Cut(text[start:], "\n\n")
		table = strings.TrimSuffix(table, "\n")
		lines := strings.Split(table, "\n")
		columns := strings.Split(lines[0], " | ")
		columns[0], columns[len(columns)-1] = "attribute", strings.TrimSuffix(columns[len(columns)-1], " |")
		written := map[string][]string{}
		for _, line := range lines[2:] {
			cells := strings.Split(strings.Trim(line, "|"), " | ")
			written[strings.TrimSpace(cells[0])] = cells
		}
		want := lines[:2:2]
		for _, row := range rows {
			name := "`" + string(row.Name) + "`"
			cells := make([]string, len(columns))
			for i, column := range columns {
				if cells[i] = cell(row, column); cells[i] == "" && len(written[name]) == len(columns) {
					cells[i] = strings.TrimSpace(written[name][i])
				}
			}
			want = append(want, "| "+strings.Join(cells, " | ")+" |")
		}
		files.Golden(t, path, text[:start]+strings.Join(want, "\n")+text[start+len(table):])
	}
}

// cell is what a page says about an attribute in a column.
func cell(row deviceclasses.AttributeRow, column string) string {
	switch column {
	case "attribute":
		return "`" + string(row.Name) + "`"
	case "type":
		return map[deviceclasses.AttributeType]string{deviceclasses.Text: "string", deviceclasses.Number: "int", deviceclasses.Flag: "bool"}[row.Type]
	case "of":
		if len(row.Kinds) == len(deviceclasses.FunctionKinds()) {
			return "all"
		}
		return strings.Join(row.Kinds, ", ")
	case "is", "meaning":
		return row.Means
	case "absent if":
		if row.Absent == "" {
			return "never"
		}
		return row.Absent
	}
	return ""
}

func TestPageHasTheMostAttributesOfAGPU(t *testing.T) {
	most := 0
	for _, row := range deviceclasses.FunctionAttributes() {
		if slices.Contains(row.Kinds, deviceclasses.KindGPU) {
			most++
		}
	}
	files.Contains(t, files.Read(t, root+"/docs/devices.md"), fmt.Sprintf("a GPU has at most %d.", most))
}

func TestPageOfZonesHasTheirWords(t *testing.T) {
	page := files.Read(t, root+"/docs/zones.md")
	files.Contains(t, page, deviceclasses.FaultPartitionInvalid, string(deviceclasses.CapacityCPU), string(deviceclasses.CapacityMemory), deviceclasses.CapacityHugepagesPrefix)
}
