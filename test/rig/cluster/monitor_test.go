package cluster

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// monitorOf answers for a QEMU: a greeting, then a line for each that comes.
func monitorOf(t *testing.T, n Node, lines ...string) *Cluster {
	t.Helper()
	r := &Cluster{Dir: t.TempDir(), Log: io.Discard}
	if err := os.MkdirAll(filepath.Dir(r.monitorSocket(n)), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", r.monitorSocket(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		for _, line := range lines {
			_, _ = io.WriteString(conn, line+"\n")
			_, _ = reader.ReadString('\n')
		}
	}()
	return r
}

func TestMonitor(t *testing.T) {
	n := Node{Name: "numa-node-0"}
	const greeting = `{"QMP": {"version": {}, "capabilities": []}}`
	for _, row := range []struct {
		lines         []string
		output, fails string
	}{
		{[]string{greeting, `{"return": {}}`, `{"event": "DEVICE_DELETED"}` + "\n" + `{"return": "done\r\n"}`}, "done\r\n", ""},
		{[]string{greeting, `{"return": {}}`, `{"return": ""}`}, "", ""},
		{[]string{greeting, `{"return": {}}`, `{"error": {"class": "GenericError", "desc": "no"}}`}, "", "monitor of numa-node-0: no"},
		{[]string{`{}`}, "", "no greeting"},
		{nil, "", "no greeting"},
	} {
		output, err := monitorOf(t, n, row.lines...).Monitor(t.Context(), n, "info status")
		if output != row.output || (err != nil) != (row.fails != "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("of %q: %q, %v; want %q, %q", row.lines, output, err, row.output, row.fails)
		}
	}
	if _, err := (&Cluster{Dir: t.TempDir()}).Monitor(t.Context(), n, "info status"); err == nil {
		t.Error("no error without a machine")
	}
}
