package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// monitorTime is how long QEMU may take to answer: it does so at once, unless it hangs.
const monitorTime = 10 * time.Second

func (r *Cluster) monitorSocket(n Node) string { return r.Path("nodes", n.Name, "monitor.sock") }

// Monitor has the monitor of a node's QEMU run one command of the human kind, such as
// "device_del dev1", and returns what it prints. QEMU prints why a command is refused,
// too: it is no error.
func (r *Cluster) Monitor(ctx context.Context, n Node, command string) (output string, err error) {
	dialer := net.Dialer{Timeout: monitorTime}
	conn, err := dialer.DialContext(ctx, "unix", r.monitorSocket(n))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(monitorTime)); err != nil {
		return "", err
	}
	encoder, decoder := json.NewEncoder(conn), json.NewDecoder(conn)
	var greeting struct {
		QMP *json.RawMessage `json:"QMP"`
	}
	if err := decoder.Decode(&greeting); err != nil || greeting.QMP == nil {
		return "", errors.Join(fmt.Errorf("%s: no greeting", r.monitorSocket(n)), err)
	}
	for _, request := range []any{
		map[string]any{"execute": "qmp_capabilities"},
		map[string]any{"execute": "human-monitor-command", "arguments": map[string]any{"command-line": command}},
	} {
		if err := encoder.Encode(request); err != nil {
			return "", err
		}
		if output, err = answer(decoder); err != nil {
			return "", fmt.Errorf("monitor of %s: %w", n.Name, err)
		}
	}
	return output, nil
}

// answer is what comes back for a request; events come between. That of a command without
// output is an object.
func answer(decoder *json.Decoder) (output string, err error) {
	for {
		var message struct {
			Return *json.RawMessage `json:"return"`
			Error  *struct {
				Description string `json:"desc"`
			} `json:"error"`
		}
		if err := decoder.Decode(&message); err != nil {
			return "", err
		}
		switch {
		case message.Error != nil:
			return "", errors.New(message.Error.Description)
		case message.Return != nil:
			_ = json.Unmarshal(*message.Return, &output)
			return output, nil
		}
	}
}
