package deviceclasses

import (
	"slices"
	"testing"
)

func TestProfilesThatDifferAndOverlap(t *testing.T) {
	config, err := DecodeNodeConfig([]byte(`apiVersion: dra.numa/v1alpha1
kind: NodeConfig
reservedMemory: 1Mi
zoneBy: l3
profiles:
- nodeSelector: {a: b}
  reservedMemory: 1024Ki
  zoneBy: numa
- nodeSelector: {c: d}
  zoneBy: socket
  numaNodeKeys: []
  performance: {allow: class}
`))
	if err != nil {
		t.Fatal(err)
	}
	one, two, both := map[string]string{"a": "b"}, map[string]string{"c": "d"}, map[string]string{"a": "b", "c": "d"}
	for _, row := range []struct {
		before, after map[string]string
		want          []string
	}{
		{nil, map[string]string{"e": "f"}, nil},
		{nil, one, []string{"zoneBy"}},
		{one, nil, []string{"zoneBy"}},
		{nil, two, []string{"numaNodeKeys", "performance", "zoneBy"}},
		{two, both, nil},
	} {
		if got := config.Differing(row.before, row.after); !slices.Equal(got, row.want) {
			t.Errorf("%v and %v differ in %q, want %q", row.before, row.after, got, row.want)
		}
	}
	if got := config.Overlapping(one); len(got) > 0 {
		t.Errorf("one profile overlaps in %q", got)
	}
	if got := config.Overlapping(both); !slices.Equal(got, []string{"zoneBy: profiles[0], profiles[1]"}) {
		t.Errorf("profiles overlap in %q", got)
	}
	settings := NodeSettings{}
	for field := range settings.named() {
		if !settings.value(field).IsValid() {
			t.Errorf("no field has the name %s", field)
		}
	}
}
