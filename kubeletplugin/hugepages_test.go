package kubeletplugin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

func TestMissingHugepagesAreEventsOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		for _, missing := range []map[string]string{
			nil,
			{"numa-1": "1Gi of 2Gi", "numa-0": "none of 2Mi"},
			{"numa-1": "1Gi of 2Gi", "numa-0": "none of 2Mi"},
			{"numa-1": "1Gi of 2Gi"},
			{},
		} {
			p.say(deviceclasses.FaultHugepages, notes(deviceclasses.FaultHugepages, missing))
			time.Sleep(200 * time.Millisecond) // each is seen, and none again
		}
		expectNodeEvents(t, c, "NUMAHugepages", "Warning NUMAHugepagesMissing device numa-0: none of 2Mi; device numa-1: 1Gi of 2Gi\n"+
			"Warning NUMAHugepagesMissing device numa-1: 1Gi of 2Gi\n"+
			"Normal NUMAHugepagesRestored Every zone has as many hugepages as claims hold")
	})
}

// expectNodeEvents waits for the events of the Node whose reasons begin with prefix: type,
// reason and note, a line for each.
func expectNodeEvents(t *testing.T, c *cluster, prefix, want string) {
	t.Helper()
	var got string
	if !until(10*time.Second, func() bool {
		events, err := c.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, event := range events.Items {
			if strings.HasPrefix(event.Reason, prefix) && event.Regarding.Kind == "Node" {
				told = append(told, event.Type+" "+event.Reason+" "+event.Note)
			}
		}
		got = strings.Join(told, "\n")
		return got == want
	}) {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}
