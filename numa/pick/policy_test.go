package pick

import (
	"encoding"
	"testing"
)

func TestPoliciesAreTheirNames(t *testing.T) {
	for _, row := range []struct {
		policy encoding.TextMarshaler
		read   encoding.TextUnmarshaler
		names  []string
		bad    string
	}{
		{
			new(CorePolicy), new(CorePolicy),
			[]string{"whole", "thread", "one-thread-per-core"},
			`cores "x": allowed are whole, thread, one-thread-per-core`,
		},
		{new(L3Policy), new(L3Policy), []string{"any", "prefer", "require"}, `l3 "x": allowed are any, prefer, require`},
		{new(Placement), new(Placement), []string{"pack", "spread"}, `placement "x": allowed are pack, spread`},
		{new(IsolatedPolicy), new(IsolatedPolicy), []string{"any", "avoid", "prefer"}, `isolated "x": allowed are any, avoid, prefer`},
	} {
		if text, err := row.policy.MarshalText(); err != nil || string(text) != row.names[0] {
			t.Errorf("the default of %T is %s, %v; want %s", row.policy, text, err, row.names[0])
		}
		for _, name := range row.names {
			if err := row.read.UnmarshalText([]byte(name)); err != nil {
				t.Errorf("%T: %v", row.read, err)
			}
			text, err := row.read.(encoding.TextMarshaler).MarshalText()
			if err != nil || string(text) != name {
				t.Errorf("%T %s comes back as %s, %v", row.read, name, text, err)
			}
			if shown := row.read.(interface{ String() string }).String(); shown != name {
				t.Errorf("%T %s is shown as %s", row.read, name, shown)
			}
		}
		if err := row.read.UnmarshalText([]byte("x")); err == nil || err.Error() != row.bad {
			t.Errorf("UnmarshalText(x) = %v, want %s", err, row.bad)
		}
		last := row.names[len(row.names)-1]
		if text, err := row.read.(encoding.TextMarshaler).MarshalText(); err != nil || string(text) != last {
			t.Errorf("UnmarshalText(x) left %s, %v; want %s", text, err, last)
		}
	}
	if text, err := CorePolicy(7).MarshalText(); err == nil || CorePolicy(7).String() != "unknown(7)" {
		t.Errorf("policy 7 is %s, %v, shown as %s; want an error and unknown(7)", text, err, CorePolicy(7))
	}
}
