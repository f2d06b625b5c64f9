package bundle

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
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

// The ids of a machine name it in other records, and addresses say where it is.
func TestMachineIDsAndAddressesAreLeftOut(t *testing.T) {
	node := &corev1.Node{}
	node.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: "hunter2", SystemUUID: "hunter2", BootID: "hunter2", KernelVersion: "6.12.0"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "hunter2"}}
	if got := redactedNode(node); strings.Contains(got.String(), "hunter2") || got.Status.NodeInfo.KernelVersion != "6.12.0" {
		t.Errorf("the node is %s", got)
	}
	keep := map[resourceapi.QualifiedName]string{
		"dra.net/ifName": "eth0", "dra.net/pciAddress": "0000:3b:00.0", "resource.kubernetes.io/pcieRoot": "pci0000:3a", "dra.net/rdmaDevice": "mlx5_0",
		"gpu.example.com/uuid": "GPU-18a3e86f-4c0e-cd9f-59c3-55488c4b0c24", "driverVersion": "10.0.4", "empty": "",
	}
	secret := map[resourceapi.QualifiedName]string{
		"dra.net/ipv4": "10.1.2.3/24", "dra.net/ipv6": "fe80::1", "dra.net/mac": "02:00:5e:10:00:01", "list": "10.1.2.3, 10.1.2.4",
		"endpoint": "10.1.2.3:80", "guid": "0c42:a103:0016:ed18", "gid": "fe80:0000:0000:0000:0e42:a1ff:fe16:ed18",
	}
	device := resourceapi.Device{Name: "a", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"all": {StringValues: []string{"10.1.2.3/24", "eth0"}},
	}}
	for _, texts := range []map[resourceapi.QualifiedName]string{keep, secret} {
		for name, text := range texts {
			device.Attributes[name] = resourceapi.DeviceAttribute{StringValue: &text}
		}
	}
	slice := &resourceapi.ResourceSlice{}
	slice.Spec.Driver, slice.Spec.Devices = "dra.net", []resourceapi.Device{device, *device.DeepCopy()}
	devices := make(addresses).redactedSlice(slice).Spec.Devices
	got := devices[0].Attributes
	for name, text := range keep {
		if *got[name].StringValue != text {
			t.Errorf("%s is %q, want %q", name, *got[name].StringValue, text)
		}
	}
	for name, text := range secret {
		if replaced := *got[name].StringValue; !strings.HasPrefix(replaced, "address-") || *devices[1].Attributes[name].StringValue != replaced || *slice.Spec.Devices[0].Attributes[name].StringValue != text {
			t.Errorf("%s is %q", name, replaced)
		}
	}
	if list := got["all"].StringValues; list[0] != *got["dra.net/ipv4"].StringValue || list[1] != "eth0" {
		t.Errorf("the list is %q", list)
	}
}

func TestAddressesInErrorsAndEventsAreLeftOut(t *testing.T) {
	b := example(&snapshot.Snapshot{})
	b.Facts.Unread = []diagnosis.Unread{{Node: "n1", Why: "proxy error: dial tcp 172.18.0.3:10250: connect: connection refused"}}
	b.Facts.Missing = []diagnosis.Unread{{Node: "n1", Why: `Get "https://[fd00:10::3]:10250/x": no route to fd00:10::3, 172.18.0.3.`}}
	b.Events = []*corev1.Event{{Message: "Get http://172.18.0.3/readyz: EOF"}}
	text := ""
	for _, file := range files.Unpack(t, written(t, b)) {
		text += file.Text
	}
	for _, address := range []string{"172.18.0.3", "fd00:10"} {
		if strings.Contains(text, address) {
			t.Errorf("%s is in it", address)
		}
	}
	for _, want := range []string{
		"dial tcp address-1:10250: connect: connection refused", `https://[address-2]:10250/x\": no route to address-2, address-1."`, "http://address-1/readyz",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it", want)
		}
	}
	if why := b.Facts.Unread[0].Why; !strings.Contains(why, "172.18.0.3") {
		t.Errorf("the facts have changed: %q", why)
	}
	for _, same := range []string{
		"", "v1.37.1", "at 2026-11-21T12:00:00Z", "function 0000:3b:00.0: gone", "node ip-172-18-0-3.example.com: no answer", "x509: 1.2.840.113549", "std::move",
	} {
		if got := make(addresses).inText(same); got != same {
			t.Errorf("%q becomes %q", same, got)
		}
	}
}
