package kubeletplugin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMissingHugepagesAreEventsOfTheNode(t *testing.T) {
	c := newCluster()
	p := startPublishing(t, c)
	eventually(t, p, http.StatusOK, "ok", 10*time.Second)
	for _, missing := range []map[string]string{
		nil,
		{"numa-1": "1Gi of 2Gi", "numa-0": "none of 2Mi"},
		{"numa-1": "1Gi of 2Gi", "numa-0": "none of 2Mi"},
		{"numa-1": "1Gi of 2Gi"},
		{},
	} {
		p.setMissing(missing)
		time.Sleep(200 * time.Millisecond) // each is seen, and none again
	}
	want := "Warning NUMAHugepagesMissing device numa-0: none of 2Mi; device numa-1: 1Gi of 2Gi\n" +
		"Warning NUMAHugepagesMissing device numa-1: 1Gi of 2Gi\n" +
		"Normal NUMAHugepagesRestored Every zone has as many hugepages as claims hold"
	var got string
	for deadline := time.Now().Add(10 * time.Second); got != want && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		events, err := c.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, event := range events.Items {
			if strings.HasPrefix(event.Reason, "NUMAHugepages") && event.Regarding.Kind == "Node" {
				told = append(told, event.Type+" "+event.Reason+" "+event.Note)
			}
		}
		got = strings.Join(told, "\n")
	}
	if got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}
