package kubeletplugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
)

// The API server answers with what it would store; nothing is stored.
func TestCountsAllocatableByWhatIsKept(t *testing.T) {
	for name, row := range map[string]struct {
		answer func(*resourceapi.ResourceSlice) error
		want   bool
		err    string
	}{
		"gate on": {func(*resourceapi.ResourceSlice) error { return nil }, true, ""},
		"gate off": {func(s *resourceapi.ResourceSlice) error {
			s.Spec.Devices[0].NodeAllocatableResources = nil
			return nil
		}, false, ""},
		"refused": {func(*resourceapi.ResourceSlice) error { return errors.New("no") }, false, "create ResourceSlice with allocatable resources (dry run): no"},
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", "resourceslices", func(action core.Action) (bool, runtime.Object, error) {
			create := action.(core.CreateActionImpl)
			slice := create.GetObject().(*resourceapi.ResourceSlice).DeepCopy()
			if dryRun := create.CreateOptions.DryRun; len(dryRun) != 1 || dryRun[0] != "All" || *slice.Spec.NodeName != "node-1" {
				t.Errorf("%s: created %+v, dry run %q", name, slice, dryRun)
			}
			return true, slice, row.answer(slice)
		})
		got, err := CountsAllocatable(t.Context(), client, "node-1")
		if got != row.want || (err == nil) != (row.err == "") || err != nil && !strings.HasSuffix(err.Error(), row.err) {
			t.Errorf("%s: %t, %v, want %t, %q", name, got, err, row.want, row.err)
		}
	}
}

// After a restart of all daemons at once, the API server may answer late.
func TestAllocatableIsAskedUntilThereIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, asked := fake.NewClientset(), 0
		client.PrependReactor("create", "resourceslices", func(action core.Action) (bool, runtime.Object, error) {
			if asked++; asked < 4 {
				return true, nil, errors.New("too busy")
			}
			return true, action.(core.CreateActionImpl).GetObject(), nil
		})
		begin := time.Now()
		if !AskAllocatable(t.Context(), client, "node-1") || asked != 4 {
			t.Errorf("asked %d times, and no answer", asked)
		}
		if took := time.Since(begin); took < 4*allocatablePeriod || took > 8*allocatablePeriod {
			t.Errorf("four times in %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if AskAllocatable(ctx, client, "node-1") || asked != 4 {
			t.Error("it asks after the end")
		}
	})
}
