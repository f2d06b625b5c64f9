package kubeletplugin

import (
	"errors"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// Each row is a start of the daemon, on the files of the one before.
func TestANewModeIsToldOnce(t *testing.T) {
	state, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	c := newCluster()
	refused := false
	c.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, errors.New("no answer")
	})
	e := events{client: c, nodeName: node, pace: eventPace()}
	for _, start := range []struct {
		mode    driver.Exclusivity
		refused bool // the API server does not take events
		want    string
	}{
		{driver.ExclusivityKernel, false, ""},
		{driver.ExclusivityKernel, false, ""},
		{driver.ExclusivityNone, true, ""},
		{driver.ExclusivityNone, false, "Warning NUMAModeLost The exclusivity of claims on this node is none, and was kernel: why"},
		{driver.ExclusivityNone, false, ""},
		{driver.ExclusivityCooperative, false, "Normal NUMAModeRestored The exclusivity of claims on this node is cooperative, and was none: why"},
		{driver.ExclusivityNone, false, "Warning NUMAModeLost The exclusivity of claims on this node is none, and was cooperative: why"},
		{driver.ExclusivityKernel, false, "Normal NUMAModeRestored The exclusivity of claims on this node is kernel, and was none: why"},
	} {
		refused = start.refused
		before := len(toldEvents(t, c))
		news := modeNews{state: state, mode: start.mode, why: "why"}
		news.tell(t.Context(), &e)
		news.tell(t.Context(), &e)
		if news.told == start.refused {
			t.Errorf("start with mode %s: told is %t", start.mode, news.told)
		}
		var got string
		if all := toldEvents(t, c); len(all) > before {
			got = all[len(all)-1]
		}
		if got != start.want {
			t.Errorf("start with mode %s: event %q, want %q", start.mode, got, start.want)
		}
	}
}
