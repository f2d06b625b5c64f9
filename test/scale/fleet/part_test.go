package fleet

import (
	"net"
	"net/rpc"
	"os"
	"strings"
	"testing"
	"time"
)

// A part does what it is asked over a connection, and ends with it.
func TestPartServesAConnection(t *testing.T) {
	folder, err := os.MkdirTemp("", "part") // of the test it would be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	here, there := net.Pipe()
	ended := make(chan error)
	go func() { ended <- Serve(there) }()
	part := &remote{client: rpc.NewClient(here)}
	call := func(method string, argument, answer any) error {
		t.Helper()
		return part.call(t.Context(), method, argument, answer)
	}
	nodes := []string{"node-0", "node-1"}
	options := PartOptions{Host: "https://127.0.0.1:1", Folder: folder, Nodes: nodes, Workers: 1, Stall: 100 * time.Millisecond}
	if err := call("Open", options, &None{}); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	err = call("Start", nodes[1:], &took)
	if err == nil || !strings.Contains(err.Error(), "1 of 1 daemons make no progress for 100ms: that of node-1") {
		t.Errorf("start without an API server: %v", err)
	}
	for _, method := range []string{"Break", "Mend", "Stop", "Reboot"} {
		if err := call(method, nodes[1:], &None{}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	var all []Counts
	if err := call("Counts", None{}, &all); err != nil || len(all) != 2 || len(all[0].Requests) != 0 || len(all[1].Requests) == 0 {
		t.Errorf("counts %v, %v, want requests of the second daemon only", all, err)
	}
	var sums map[Kind]uint64
	if err := call("Sum", None{}, &sums); err != nil || len(sums) > 0 {
		t.Errorf("sums %v, %v, want none: nothing was answered", sums, err)
	}
	if err := part.client.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
