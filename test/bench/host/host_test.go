package host

import "testing"

func TestBusyIsALoadAboveOne(t *testing.T) {
	for load, want := range map[string]bool{"0.00, 7.18, 7.28": false, "1.00, 0, 0": false, "1.01, 0, 0": true, "unknown": true} {
		if Busy(load) != want {
			t.Errorf("%q: %t, want %t", load, !want, want)
		}
	}
}
