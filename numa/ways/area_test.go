package ways

import (
	"errors"
	"strings"
	"testing"
)

// tenants are the claims of one pool, which come and go.
type tenants struct {
	t      *testing.T
	area   Area
	claims []Claim
	plan   Plan // of the last change
}

// come adds a claim and returns its mask, or the error.
func (s *tenants) come(id string, least, most int) (Mask, error) {
	s.t.Helper()
	if err := s.settle(append(s.claims[:len(s.claims):len(s.claims)], Claim{ID: id, Min: least, Max: most})); err != nil {
		return 0, err
	}
	return s.mask(id), nil
}

func (s *tenants) leave(id string) {
	s.t.Helper()
	var left []Claim
	for _, c := range s.claims {
		if c.ID != id {
			left = append(left, c)
		}
	}
	if err := s.settle(left); err != nil {
		s.t.Fatal(err)
	}
}

func (s *tenants) settle(claims []Claim) error {
	s.t.Helper()
	changes, err := s.area.Arrange(claims)
	if err != nil {
		return err
	}
	cache := cacheOf(20, s.area.minWays)
	cache.Sparse = s.area.sparse
	if s.plan, err = Order(cache, changes); err != nil {
		s.t.Fatal(err)
	}
	carriedOut(s.t, cache, presentOf(changes), s.plan)
	s.claims = claims
	for i := range claims {
		s.claims[i].Mask = changes[i].Wanted
	}
	return nil
}

func (s *tenants) mask(id string) Mask {
	for _, c := range s.claims {
		if c.ID == id {
			return c.Mask
		}
	}
	return 0
}

func (s *tenants) String() string {
	var parts []string
	for _, c := range s.claims {
		parts = append(parts, c.ID+" "+c.Mask.String())
	}
	return strings.Join(parts, ", ")
}

func (s *tenants) want(text string) {
	s.t.Helper()
	if s.String() != text {
		s.t.Errorf("the claims have %s, want %s", s, text)
	}
}

func (s *tenants) wantPlan(text string) {
	s.t.Helper()
	if s.plan.String() != text {
		s.t.Errorf("the plan is %s, want %s", s.plan, text)
	}
}

func TestGuaranteedClaimsArePackedFromTheLowEnd(t *testing.T) {
	s := &tenants{t: t, area: Offer(cacheOf(20, 1), 0x7fe)}
	for _, row := range []struct {
		id   string
		ways int
		want Mask
	}{{"a", 2, 0x6}, {"b", 3, 0x38}, {"c", 1, 0x40}} {
		if got, err := s.come(row.id, row.ways, row.ways); err != nil || got != row.want {
			t.Errorf("%s: %s, %v, want %s", row.id, got, err, row.want)
		}
	}
	s.leave("a")
	s.wantPlan("")
	if _, err := s.come("d", 3, 3); err != nil {
		t.Fatal(err)
	}
	s.want("b 38, c 40, d 380")
	if _, err := s.come("e", 2, 2); err != nil {
		t.Fatal(err)
	}
	s.want("b 38, c 40, d 380, e 6")
	_, err := s.come("f", 2, 2)
	if want := "arrange ways 7fe: 4 claims keep 9 ways, new ones need 2, the pool offers 10: not enough ways"; !errors.Is(err, ErrNotEnough) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestMiddleClaimMovesToOneEnd(t *testing.T) {
	s := &tenants{t: t, area: Offer(cacheOf(20, 1), 0x7fe)}
	for _, c := range []struct {
		id   string
		ways int
	}{{"a", 4}, {"b", 3}, {"c", 3}} {
		if _, err := s.come(c.id, c.ways, c.ways); err != nil {
			t.Fatal(err)
		}
	}
	s.want("a 1e, b e0, c 700")
	s.leave("a")
	s.leave("c")
	s.want("b e0")
	if _, err := s.come("d", 5, 5); err != nil {
		t.Fatal(err)
	}
	s.want("b e, d 1f0")
	s.wantPlan("b: e0 -> e, d: 0 -> 1f0")
}

// Of claims with 2 ways each that leave 2 free at either end, one jumps; three would
// have to slide.
func TestOneClaimJumpsWhereThreeWouldSlide(t *testing.T) {
	s := &tenants{t: t, area: Offer(cacheOf(20, 1), 0x3ff), claims: fixed([]Mask{0xc, 0x30, 0xc0})}
	if got, err := s.come("new", 4, 4); err != nil || got != 0x3c0 {
		t.Errorf("%s, %v", got, err)
	}
	s.wantPlan("2: c0 -> 3, new: 0 -> 3c0")
}

func TestBestEffortGrowsAndShrinks(t *testing.T) {
	s := &tenants{t: t, area: Offer(cacheOf(20, 1), 0x3f800)}
	s.area.Growing = true
	for _, row := range []struct{ id, want string }{
		{"a", "a f800"},
		{"b", "a 7800, b 38000"},
		{"c", "a 3800, b 30000, c c000"},
	} {
		if _, err := s.come(row.id, 2, 5); err != nil {
			t.Fatal(err)
		}
		s.want(row.want)
	}
	s.wantPlan("a: 7800 -> 3800, b: 38000 -> 30000, c: 0 -> c000")
	if _, err := s.come("d", 2, 5); !errors.Is(err, ErrNotEnough) {
		t.Errorf("the fourth: %v", err)
	}
	s.leave("a")
	s.want("b 3c000, c 3800")
	s.wantPlan("c: c000 -> 3800, b: 30000 -> 3c000")
	s.leave("b")
	s.want("c f800")
}

func TestBestEffortStaysAtItsMinimumWithoutGrowing(t *testing.T) {
	s := &tenants{t: t, area: Offer(cacheOf(20, 1), 0x3f800)}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := s.come(id, 2, 5); err != nil {
			t.Fatal(err)
		}
	}
	s.want("a 1800, b 6000, c 18000")
	s.area.Growing = true
	s.leave("b")
	s.want("a 7800, c 38000")
	s.area.Growing = false
	s.leave("b") // again
	s.want("a 1800, c 18000")
}

func TestWaysAreSharedEvenly(t *testing.T) {
	for _, row := range []struct {
		claims []Claim
		ways   int
		want   []int
	}{
		{[]Claim{{Min: 1, Max: 6}, {Min: 4, Max: 6}}, 8, []int{4, 4}},
		{[]Claim{{Min: 1, Max: 9}, {Min: 1, Max: 2}, {Min: 1, Max: 9}}, 10, []int{4, 2, 4}},
		{[]Claim{{Min: 2, Max: 5}, {Min: 2, Max: 5}, {Min: 2, Max: 5}}, 10, []int{4, 3, 3}},
		{[]Claim{{Min: 2, Max: 3}, {Min: 2, Max: 3}}, 10, []int{3, 3}},
		{[]Claim{{Min: 4, Max: 4}, {Min: 1, Max: 9}}, 10, []int{4, 6}},
		{nil, 10, nil},
	} {
		a := Offer(cacheOf(20, 1), run(0, row.ways))
		a.Growing = true
		for i := range row.claims {
			row.claims[i].ID = string(rune('a' + i))
		}
		changes, err := a.Arrange(row.claims)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range changes {
			if c.Wanted.Ways() != row.want[i] {
				t.Errorf("%+v of %d ways: %v, want %v", row.claims, row.ways, changes, row.want)
				break
			}
		}
	}
}

func TestOtherToolsLeaveTheirLongestRun(t *testing.T) {
	for _, row := range []struct {
		minBits         int
		pool            Mask
		foreign         []Mask
		usable, allowed Mask
	}{
		{1, 0x7fe, nil, 0x7fe, 0x7fe},
		{1, 0x7fe, []Mask{0x78}, 0x780, 0x786},
		{1, 0x7fe, []Mask{0x60}, 0x1e, 0x79e},
		{1, 0x7fe, []Mask{0x60, 0x3}, 0x780, 0x79c},
		{1, 0x7fe, []Mask{0xfffff}, 0, 0},
		{2, 0x7fe, []Mask{0x36c, 0x800}, 0x0, 0x492},
	} {
		if a := Offer(cacheOf(20, row.minBits), row.pool, row.foreign...); a.Usable != row.usable || a.Allowed != row.allowed {
			t.Errorf("%s leaves %s of %s, %s in all; want %s, %s", row.foreign, a.Usable, row.pool, a.Allowed, row.usable, row.allowed)
		}
	}
	sparse := cacheOf(20, 1)
	sparse.Sparse = true
	if a := Offer(sparse, 0x7fe, 0x78); a.Usable != 0x786 {
		t.Errorf("%s is usable", a.Usable)
	}
}

// A tool takes ways 3 and 4 of a pool: a claim under them moves, one in the shorter run
// stays, and a new one goes to the longer run.
func TestClaimsMakeRoomForOtherTools(t *testing.T) {
	s := &tenants{t: t, area: Offer(cacheOf(20, 1), 0x7fe, 0x18), claims: fixed([]Mask{0x6, 0x38})}
	if got, err := s.come("new", 1, 1); err != nil || got != 0x20 {
		t.Errorf("%s, %v", got, err)
	}
	s.want("0 6, 1 1c0, new 20")
	if _, err := s.come("another", 1, 1); !errors.Is(err, ErrNotEnough) {
		t.Error(err)
	}
}

func TestSparseMasksNeverMove(t *testing.T) {
	cache := cacheOf(20, 1)
	cache.Sparse = true
	s := &tenants{t: t, area: Offer(cache, 0x3ff, 0x8), claims: fixed([]Mask{0x6, 0x60})}
	if got, err := s.come("new", 4, 4); err != nil || got != 0x191 {
		t.Errorf("%s, %v", got, err)
	}
	s.wantPlan("new: 0 -> 191")
	s.area.Growing = true
	s.claims[1].Max = 3
	s.leave("0")
	s.want("1 62, new 191")
}

func TestClaimsThatAreNotValidAreRefused(t *testing.T) {
	a := Offer(cacheOf(12, 2), 0xffc)
	for _, row := range []struct {
		claims []Claim
		want   string
	}{
		{[]Claim{{ID: "a", Min: 1, Max: 2}}, `claim "a" of 1 to 2 ways: allowed are 2 ≤ minimum ≤ maximum ≤ 64`},
		{[]Claim{{ID: "a", Min: 4, Max: 3}}, `claim "a" of 4 to 3 ways`},
		{[]Claim{{ID: "a", Min: 4, Max: 1 << 62}}, `claim "a" of 4 to`},
		{[]Claim{{ID: "a", Min: 2, Max: 2}, {ID: "a", Min: 2, Max: 2}}, `claim "a" is in the list twice`},
	} {
		if _, err := a.Arrange(row.claims); err == nil || errors.Is(err, ErrNotEnough) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %s", row.claims, err, row.want)
		}
	}
}

func TestChangesThatAreNotValidAreRefused(t *testing.T) {
	for _, row := range []struct {
		changes []Change
		want    string
	}{
		{[]Change{{"a", 0, 3}, {"a", 0, 0xc}}, `order masks of L3: group "a" is named twice`},
		{[]Change{{"a", 0, 3}, {"b", 0, 6}}, `groups "a" and "b" want ways 3 and 6, which overlap`},
		{[]Change{{"a", 0, 0x1800}}, `group "a" wants ways 1800, the cache has fff`},
		{[]Change{{"a", 0, 1}}, `group "a" wants ways 1: a mask has at least 2 ways (min_cbm_bits)`},
		{[]Change{{"a", 3, 0}}, `group "a" wants ways 0: a mask has at least 2 ways (min_cbm_bits)`},
		{[]Change{{"a", 0, 5}}, `group "a" wants ways 5, which are not contiguous`},
	} {
		if p, err := Order(cacheOf(12, 2), row.changes); err == nil || p != nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, %v, want %s", row.changes, p, err, row.want)
		}
	}
	_, err := Order(cacheOf(12, 2), []Change{{"a", 3, 0xc}, {"b", 0xc, 3}})
	if want := "order masks of L3: a: 3 -> c, b: c -> 3: no order of writes keeps the masks apart"; !errors.Is(err, ErrNoOrder) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
