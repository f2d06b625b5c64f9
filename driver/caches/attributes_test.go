package caches

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

func TestEveryAttributeHasAValue(t *testing.T) {
	values := new(Pool).values()
	for _, row := range deviceclasses.CacheAttributes() {
		if _, has := values[row.Name]; has != (row.Same == "") {
			t.Errorf("%s has a value: %t", row.Name, has)
		}
		delete(values, row.Name)
	}
	for name := range values {
		t.Errorf("%s has a value, and is not in the table", name)
	}
}
