package bundle

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Daemons with an older version, or another program in the pod, may log bodies.
func TestLogsHaveNoBodies(t *testing.T) {
	const before = `	00000020  68 75 6e 74 65 72 32 00                           |hunter2|
 >
I1123 11:37:39.976154   31635 run.go:1] "Ready" node="n1"
I1123 11:37:39.976155   31635 type.go:165] "Request Body" body=""
I1123 11:37:40.176616   31635 type.go:165] "Response Body" logger="x" body="{\"data\": {\"tls.key\": \"hunter2\"}}"
I1123 11:37:40.176753   31635 type.go:228] "Request Body" body=<
	00000000  68 75 6e 74 65 72 32 00                           |hunter2|
 >
E1123 11:37:40.176754   31635 run.go:2] "Publishing failed" err=<
	two lines
	I1123 of an error
 >
I1123 11:37:41.000000   31635 request.go:1212] Response Body: {"tls.key": "hunter2"}
continued hunter2
dra-numa: error: ended
I1123 11:37:42.000000   31635 request.go:1] "Response Body" body="hunter2 cut off`
	const want = `(left out: the rest of an earlier message)
I1123 11:37:39.976154   31635 run.go:1] "Ready" node="n1"
I1123 11:37:39.976155   31635 type.go:165] "Request Body" (left out)
I1123 11:37:40.176616   31635 type.go:165] "Response Body" (left out)
I1123 11:37:40.176753   31635 type.go:228] "Request Body" (left out)
E1123 11:37:40.176754   31635 run.go:2] "Publishing failed" err=<
	two lines
	I1123 of an error
 >
I1123 11:37:41.000000   31635 request.go:1212] Response Body (left out)
I1123 11:37:42.000000   31635 request.go:1] "Response Body" (left out)
`
	if got := string(redactedLog([]byte(before))); got != want {
		t.Errorf("the log is\n%s\nwant\n%s", got, want)
	}
	for _, same := range []string{"", "Publishing zones\n", "dra-numa: error: x"} {
		if got := string(redactedLog([]byte(same))); got != same {
			t.Errorf("%q is %q", same, got)
		}
	}
}

func FuzzLogsHaveNoBodies(f *testing.F) {
	f.Add("I1123 11:37:39.976154   31635 type.go:165] ", "hunter2")
	f.Fuzz(func(t *testing.T, before, body string) {
		const header = "I1123 11:37:40.176616   31635 type.go:165] \"Response Body\" body="
		if strings.Contains(body, "]") || strings.Contains(before, "secret") {
			t.Skip("a body may not begin a message of its own")
		}
		got := redactedLog([]byte(strings.TrimSuffix(before, "\n") + "\n" + header + "secret" + body))
		if bytes.Contains(got, []byte("secret")) {
			t.Errorf("the log is\n%s", got)
		}
	})
}

// Another driver may write anything into the status of a claim.
func TestStatusOfOtherDriversIsLeftOut(t *testing.T) {
	data := &runtime.RawExtension{Raw: []byte(`{"key": "hunter2"}`)}
	network := &resourceapi.NetworkDeviceData{InterfaceName: "hunter2"}
	claim := &resourceapi.ResourceClaim{}
	claim.Status.Devices = []resourceapi.AllocatedDeviceStatus{
		{Driver: "dra.net", Device: "eth0", Data: data, NetworkData: network},
		{Driver: "dra.numa", Device: "nic-0", NetworkData: &resourceapi.NetworkDeviceData{InterfaceName: "eth1"}},
	}
	text, err := json.Marshal(redactedClaim(claim))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, "hunter2") || !strings.Contains(got, "eth0") || !strings.Contains(got, "eth1") {
		t.Errorf("the claim is\n%s", got)
	}
}
