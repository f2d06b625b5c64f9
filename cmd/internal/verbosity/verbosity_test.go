package verbosity

import (
	"testing"

	"k8s.io/klog/v2"
)

func TestSet(t *testing.T) {
	for level, allowed := range map[int]bool{-1: false, 0: true, 4: true, 10: true, 11: false} {
		if err := Set(level); (err == nil) != allowed {
			t.Errorf("level %d: %v", level, err)
		} else if want := klog.Level(min(level, highest)); allowed && (!klog.V(want).Enabled() || klog.V(want+1).Enabled()) {
			t.Errorf("level %d is not %d in klog", level, want)
		}
	}
}
