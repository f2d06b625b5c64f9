package cpuset

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParseReadsTheKernelsLists(t *testing.T) {
	for list, want := range map[string][]int{
		"":           nil,
		"\n":         nil,
		"0":          {0},
		"0-3,8\n":    {0, 1, 2, 3, 8},
		"8,0-1":      {0, 1, 8},
		"0-2,1-3":    {0, 1, 2, 3},
		"8191":       {8191},
		"63-64,0250": {63, 64, 250},
	} {
		got, err := Parse(list)
		if err != nil || !slices.Equal(slices.Collect(got.All()), want) {
			t.Errorf("Parse(%q) = %s, %v; want %v", list, got, err, want)
		}
	}
}

func TestParseRefusesWhatIsNoList(t *testing.T) {
	for reason, lists := range map[string][]string{
		"not a decimal number": {"a", "-1", "1-", "+1", "0,,1", "0, 1", "0x1", "0-3:1/2", "0\x00"},
		"runs backwards":       {"3-1"},
		"above 8191":           {"8192", "0-4294967295", "99999999999999999999-0"},
	} {
		for _, list := range lists {
			got, err := Parse(list)
			if err == nil || !got.IsEmpty() {
				t.Errorf("Parse(%q) = %s, %v; want an error", list, got, err)
			} else if !strings.HasPrefix(err.Error(), "cpulist ") || !strings.Contains(err.Error(), reason) {
				t.Errorf("Parse(%q): %q does not say %q", list, err, reason)
			}
		}
	}
}

func TestParseMaskReadsTheKernelsMasks(t *testing.T) {
	for mask, want := range map[string]string{
		"0":                                    "",
		"f":                                    "0-3",
		"0000ff0f\n":                           "0-3,8-15",
		"00000001,00000000":                    "32",
		"80000000,00000000,00000001":           "0,95",
		strings.Repeat("00000000,", 999) + "3": "0-1",
	} {
		got, err := ParseMask(mask)
		if err != nil || got.String() != want {
			t.Errorf("ParseMask(%.40q) = %s, %v; want %s", mask, got, err, want)
		}
		if again, err := ParseMask(got.Mask()); err != nil || again != got {
			t.Errorf("mask %q of %s is read as %s, %v", got.Mask(), got, again, err)
		}
	}
	for _, mask := range []string{"", "g", "0x1", "-1", "100000000", "1,,1", "1 1", "1" + strings.Repeat(",00000000", 256)} {
		if got, err := ParseMask(mask); err == nil || !got.IsEmpty() {
			t.Errorf("ParseMask(%.40q) = %s, %v; want an error", mask, got, err)
		}
	}
}

func TestMaskIsThatOfTheKernel(t *testing.T) {
	for list, want := range map[string]string{"": "0", "0-3": "f", "32": "1,00000000", "0,95": "80000000,00000000,00000001", "31-32": "1,80000000"} {
		cpus, err := Parse(list)
		if got := cpus.Mask(); err != nil || got != want {
			t.Errorf("mask of %q is %q, %v, want %q", list, got, err, want)
		}
	}
}

func TestNewPanicsOutOfBounds(t *testing.T) {
	for _, id := range []int{-1, MaxCPUs} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%d) did not panic", id)
				}
			}()
			New(id)
		}()
		all, _ := Parse("0-8191")
		if all.Remove(id); all.Contains(id) || all.Size() != MaxCPUs {
			t.Errorf("the set of all ids contains %d, or not that many others: %d", id, all.Size())
		}
	}
}

func TestSetArithmeticIsThatOfMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		inA, inB := map[int]bool{}, map[int]bool{}
		var a, b Set
		for range r.IntN(40) {
			id := r.IntN(130) // crosses two words
			inA[id], a = true, a.Union(New(id))
			id = r.IntN(130)
			inB[id] = true
			b.Insert(id)
			id = r.IntN(130)
			delete(inB, id)
			b.Remove(id)
		}
		union, both, onlyA := a.Union(b), a.Intersection(b), a.Difference(b)
		overlaps, subset := false, true
		for id := range 192 {
			overlaps = overlaps || inA[id] && inB[id]
			subset = subset && (!inA[id] || inB[id])
			if union.Contains(id) != (inA[id] || inB[id]) || both.Contains(id) != (inA[id] && inB[id]) ||
				onlyA.Contains(id) != (inA[id] && !inB[id]) ||
				a.Words()[id/64]>>(id%64)&1 == 1 != inA[id] {
				t.Fatalf("id %d of %s and %s is wrong", id, a, b)
			}
		}
		if a.Overlaps(b) != overlaps || a.IsSubsetOf(b) != subset || a.Size() != len(inA) || a.IsEmpty() != (len(inA) == 0) {
			t.Errorf("%s and %s: overlaps %t, subset %t, size %d", a, b, a.Overlaps(b), a.IsSubsetOf(b), a.Size())
		}
		ids := slices.Collect(a.All())
		if first, ok := a.First(); !slices.IsSorted(ids) || ok != (len(ids) > 0) || ok && first != ids[0] {
			t.Errorf("All(%s) = %v, First = %d, %t", a, ids, first, ok)
		}
	}
}

// naiveList is the list form, looked up id by id.
func naiveList(s Set) string {
	var spans []string
	for id := 0; id < MaxCPUs; id++ {
		if !s.Contains(id) {
			continue
		}
		first := id
		for s.Contains(id + 1) {
			id++
		}
		if first == id {
			spans = append(spans, strconv.Itoa(id))
		} else {
			spans = append(spans, fmt.Sprintf("%d-%d", first, id))
		}
	}
	return strings.Join(spans, ",")
}

func TestStringIsTheKernelsList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, edge := range []int{0, 63, 64, 127, 128, MaxCPUs - 64, MaxCPUs - 1} { // where words begin and end
		for length := range 131 {
			var s Set
			for id := edge; id < min(edge+length, MaxCPUs); id++ {
				s.Insert(id)
			}
			for range r.IntN(8) {
				s.Insert(r.IntN(MaxCPUs))
			}
			if got, want := s.String(), naiveList(s); got != want {
				t.Errorf("String = %s, want %s", got, want)
			}
		}
	}
	all, _ := Parse("0-8191")
	if got := all.String(); got != "0-8191" {
		t.Errorf("String of all = %s", got)
	}
}

func TestASetInJSONIsItsList(t *testing.T) {
	data, err := json.Marshal(map[string]Set{"cpus": New(0, 1, 2, 8)})
	if err != nil || string(data) != `{"cpus":"0-2,8"}` {
		t.Errorf("Marshal = %s, %v", data, err)
	}
	var back map[string]Set
	if err := json.Unmarshal(data, &back); err != nil || back["cpus"] != New(0, 1, 2, 8) {
		t.Errorf("Unmarshal = %v, %v", back, err)
	}
	set := New(5)
	if err := set.UnmarshalText([]byte("x")); err == nil || set != New(5) {
		t.Errorf("UnmarshalText(x) = %v and left %s, want an error and 5", err, set)
	}
}

func FuzzParse(f *testing.F) {
	fuzz(f, Parse, "", "0-3,8", "3-1", "8191", "0-3:1/2", "9-99999999999")
}

func FuzzParseMask(f *testing.F) {
	fuzz(f, ParseMask, "", "f", "00000001,00000000", "g", "1,1,1,1")
}

// fuzz checks that a parser returns an error or a set, and that the set's list parses to
// the same set.
func fuzz(f *testing.F, parse func(string) (Set, error), seeds ...string) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parse(text)
		if err != nil && !set.IsEmpty() {
			t.Errorf("parse %q: %s and %v", text, set, err)
		}
		if back, err := Parse(set.String()); err != nil || back != set {
			t.Errorf("parse %q: %s, which parses to %s, %v", text, set, back, err)
		}
	})
}

// BenchmarkSet shows what a caller pays; a set is 1 KiB, and a copy of one takes some 20
// ns.
func BenchmarkSet(b *testing.B) {
	s, err := Parse("0-31,128-159,256-287,400,402,404")
	if err != nil {
		b.Fatal(err)
	}
	other := New(1, 2, 3)
	for _, row := range []struct {
		name string
		call func(id int) bool
	}{
		{"Contains", func(id int) bool { return s.Contains(id & 511) }},
		{"Size", func(int) bool { return s.Size() == 0 }},
		{"IsSubsetOf", func(int) bool { return other.IsSubsetOf(s) }},
		{"Union", func(int) bool { union := s.Union(other); return union.Contains(0) }},
		{"String", func(int) bool { return s.String() == "" }},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				row.call(i)
			}
		})
	}
}
