package effect

import (
	"errors"
	"testing"
)

// kernel has a value, and limits what is written.
type kernel struct{ has, most, writes int }

func (k *kernel) apply(value int) (int, error) {
	k.writes++
	k.has = min(value, k.most)
	return k.has, nil
}

func TestOnlyWhatIsOursIsGivenBack(t *testing.T) {
	value := Value[int]{First: 8, Was: 12, Asked: 20, Got: 19}
	for shown, want := range map[int]int{20: 8, 19: 8, 12: 8, 8: 0, 14: 0, 0: 0} {
		if got := value.Back(shown); got != want {
			t.Errorf("%d is shown: %d is given back, want %d", shown, got, want)
		}
	}
	unasked := Value[string]{First: "powersave"}
	if back, made := unasked.Back("performance"), unasked.Made("performance"); back != "" || made != "" {
		t.Errorf("nothing was asked: %q is given back, and the kernel made %q", back, made)
	}
	if made := (Value[int]{Asked: 20}).Made(19); made != 19 {
		t.Errorf("the kernel made %d, want 19", made)
	}
}

// A daemon that died after a write does not know what the kernel made of it.
func TestAfterACrashOnlyWhatTheKernelMakesOfTheWriteIsOurs(t *testing.T) {
	for name, row := range map[string]struct {
		value       Value[int]
		shown       int
		got, writes int
	}{
		"not written":            {value: Value[int]{First: 8, Asked: 22}, shown: 8},
		"before the last write":  {value: Value[int]{First: 8, Was: 12, Asked: 22}, shown: 12},
		"as asked":               {value: Value[int]{First: 8, Asked: 22}, shown: 22},
		"as known":               {value: Value[int]{First: 8, Asked: 22, Got: 17}, shown: 17, got: 17},
		"nothing asked":          {value: Value[int]{First: 8}, shown: 17},
		"limited by the kernel":  {value: Value[int]{First: 8, Asked: 22}, shown: 19, got: 19, writes: 1},
		"limited further":        {value: Value[int]{First: 8, Asked: 22, Got: 18}, shown: 19, got: 19, writes: 1},
		"another program's":      {value: Value[int]{First: 8, Was: 8, Asked: 22}, shown: 17, writes: 2},
		"another's, and got one": {value: Value[int]{First: 8, Asked: 22, Got: 18}, shown: 17, got: 18, writes: 2},
	} {
		k := &kernel{has: row.shown, most: 19}
		got, err := row.value.Probe(row.shown, k.apply)
		if err != nil || got != row.got || k.writes != row.writes || k.has != row.shown {
			t.Errorf("%s: got %d, %v with %d writes, the kernel has %d; want %d with %d writes, and %d", name, got, err, k.writes, k.has, row.got, row.writes, row.shown)
		}
	}
	broken := errors.New("broken")
	_, err := Value[int]{First: 8, Asked: 22}.Probe(17, func(int) (int, error) { return 0, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
