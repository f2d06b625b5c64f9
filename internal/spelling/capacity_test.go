package spelling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// sameText compares amounts that cannot be compared as numbers.
func sameText(a, b resource.Quantity) bool { return a.String() == b.String() }

func TestAmountsInBothSpellings(t *testing.T) {
	type amounts = map[resourceapi.QualifiedName]resource.Quantity
	four, two, endless := resource.MustParse("4"), resource.MustParse("2"), resource.MustParse(object.EndlessAmount)
	for name, row := range map[string]struct{ given, want amounts }{
		"nothing":                  {nil, nil},
		"as published":             {amounts{"cpu": four, "hugepages2Mi": two}, amounts{"cpu": four, "hugepages2Mi": two}},
		"with the domain":          {amounts{"dra.numa/cpu": four, "memory": two}, amounts{"cpu": four, "memory": two}},
		"in both":                  {amounts{"dra.numa/cpu": four, "cpu": two}, amounts{"cpu": four}},
		"of another driver":        {amounts{"dra.cpu/cpu": four}, amounts{"dra.cpu/cpu": four}},
		"of a domain like it":      {amounts{"xdra.numa/cpu": four}, amounts{"xdra.numa/cpu": four}},
		"with the domain only":     {amounts{"dra.numa/": four}, amounts{"": four}},
		"with the domain, unknown": {amounts{"dra.numa/ways": four}, amounts{"ways": four}},
		"one not countable":        {amounts{"dra.numa/cpu": four, "cpu": endless}, amounts{"cpu": endless}},
		"none countable":           {amounts{"dra.numa/cpu": endless, "cpu": endless}, amounts{"cpu": endless}},
	} {
		if diff := cmp.Diff(row.want, spelling.Amounts("dra.numa", row.given), cmp.Comparer(sameText)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTextOfThousandsHasAllDigits(t *testing.T) {
	for text, want := range map[string]string{"4": "4", "2000": "2000", "2k": "2000", "-1k": "-1000", "2001": "2001", "1500m": "1500m", "8Gi": "8Gi", "2G": "2G", "0": "0"} {
		if got := spelling.Text(resource.MustParse(text)); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}

func TestCountable(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "4": true, "1n": true, "-3m": true, "8Ei": true, "123456789012345678901234567890": true, "1e30": true,
		object.EndlessAmount: false, "-" + object.EndlessAmount: false, "0e999999": false, "1e31": false,
	} {
		if got := spelling.Countable(resource.MustParse(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
