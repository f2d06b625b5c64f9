package capacity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/capacity"
)

func TestAmountsInBothSpellings(t *testing.T) {
	type amounts = map[resourceapi.QualifiedName]resource.Quantity
	four, two := resource.MustParse("4"), resource.MustParse("2")
	for name, row := range map[string]struct{ given, want amounts }{
		"nothing":                  {nil, nil},
		"as published":             {amounts{"cpu": four, "hugepages2Mi": two}, amounts{"cpu": four, "hugepages2Mi": two}},
		"with the domain":          {amounts{"dra.numa/cpu": four, "memory": two}, amounts{"cpu": four, "memory": two}},
		"in both":                  {amounts{"dra.numa/cpu": four, "cpu": two}, amounts{"cpu": four}},
		"of another driver":        {amounts{"dra.cpu/cpu": four}, amounts{"dra.cpu/cpu": four}},
		"of a domain like it":      {amounts{"xdra.numa/cpu": four}, amounts{"xdra.numa/cpu": four}},
		"with the domain only":     {amounts{"dra.numa/": four}, amounts{"": four}},
		"with the domain, unknown": {amounts{"dra.numa/ways": four}, amounts{"ways": four}},
	} {
		if diff := cmp.Diff(row.want, capacity.Amounts("dra.numa", row.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
