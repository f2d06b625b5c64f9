package kubeletplugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// notValid is how an API server refuses a slice.
func notValid() error {
	return apierrors.NewInvalid(schema.GroupKind{Group: resourceapi.GroupName, Kind: "ResourceSlice"}, "", nil)
}

// The API server answers with what it would store; nothing is stored.
func TestAGateIsKnownByWhatIsKept(t *testing.T) {
	keep := func(*resourceapi.ResourceSlice) error { return nil }
	refuse := func(*resourceapi.ResourceSlice) error { return errors.New("no") }
	for name, row := range map[string]struct {
		gate   Gate
		answer func(*resourceapi.ResourceSlice) error
		want   bool
		err    string
	}{
		"allocatable: gate on": {NodeAllocatable(), keep, true, ""},
		"allocatable: gate off": {NodeAllocatable(), func(s *resourceapi.ResourceSlice) error {
			s.Spec.Devices[0].NodeAllocatableResources = nil
			return nil
		}, false, ""},
		"allocatable: refused":   {NodeAllocatable(), refuse, false, "create ResourceSlice with allocatable resources (dry run): no"},
		"allocatable: not valid": {NodeAllocatable(), func(*resourceapi.ResourceSlice) error { return notValid() }, false, "is invalid"},
		"lists: gate on":         {NUMANodeLists(), keep, true, ""},
		"lists: gate off":        {NUMANodeLists(), func(*resourceapi.ResourceSlice) error { return notValid() }, false, ""},
		"lists: dropped": {NUMANodeLists(), func(s *resourceapi.ResourceSlice) error {
			s.Spec.Devices[0].Attributes[deviceclasses.AttributeNUMANode] = resourceapi.DeviceAttribute{}
			return nil
		}, false, ""},
		"lists: refused": {NUMANodeLists(), refuse, false, "create ResourceSlice with a list (dry run): no"},
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
		got, err := row.gate.Ask(t.Context(), client, "node-1")
		if got != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %t, %v, want %t, %q", name, got, err, row.want, row.err)
		}
	}
}

// After a restart of all daemons at once, the API server may answer late, and to one question
// before the other.
func TestGatesAreAskedUntilThereIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, asked := fake.NewClientset(), 0
		client.PrependReactor("create", "resourceslices", func(action core.Action) (bool, runtime.Object, error) {
			if asked++; asked != 2 && asked < 5 {
				return true, nil, errors.New("too busy")
			}
			return true, action.(core.CreateActionImpl).GetObject(), nil
		})
		var told []driver.Gates
		var now driver.Gates
		tell := func(change func(*driver.Gates)) {
			change(&now)
			told = append(told, now)
		}
		begin := time.Now()
		later, err := Learn(t.Context(), client, "node-1", tell, NodeAllocatable(), NUMANodeLists())
		if err == nil || !strings.HasSuffix(err.Error(), "too busy") || len(told) != 1 || told[0] != (driver.Gates{NUMANodeLists: true}) {
			t.Fatalf("told %+v, %v", told, err)
		}
		later(t.Context())
		if asked != 5 || len(told) != 2 || now != (driver.Gates{NodeAllocatable: true, NUMANodeLists: true}) {
			t.Errorf("asked %d times, told %+v", asked, told)
		}
		if took := time.Since(begin); took < 3*gatePeriod || took > 6*gatePeriod {
			t.Errorf("three times in %s", took)
		}
		later(t.Context()) // has nothing to ask
		asked = 0
		ctx, cancel := context.WithCancel(t.Context())
		if later, err = Learn(ctx, client, "node-1", tell, NodeAllocatable()); err == nil {
			t.Error("no error")
		}
		cancel()
		if later(ctx); asked != 1 {
			t.Error("it asks after the end")
		}
	})
}
