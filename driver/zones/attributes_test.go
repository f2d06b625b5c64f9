package zones

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

func TestEveryAttributeHasAValue(t *testing.T) {
	values := Zone{Nodes: []int{0}}.values(&numa.Machine{Zones: []numa.Zone{{}}}, Settings{})
	for _, row := range deviceclasses.ZoneAttributes() {
		if _, has := values[row.Name]; has != (row.Same == "") {
			t.Errorf("%s has a value: %t", row.Name, has)
		}
		delete(values, row.Name)
	}
	for name := range values {
		t.Errorf("%s has a value, and is not in the table", name)
	}
}
