package collect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// Exec runs a program in a container of a pod, and returns what the program printed to
// stdout. The error has the last line that the program printed to stderr.
type Exec func(ctx context.Context, pod *corev1.Pod, container string, command []string) (stdout []byte, err error)

// stdoutBytes limits how much of a program's output is held in memory. The state of a
// node with a thousand claims is 2 MiB.
const stdoutBytes = 64 << 20

// NewExec returns an Exec that runs programs through the API server, over a websocket.
// Every API server that the driver supports has websockets. The user needs the verbs
// get and create on pods/exec.
func NewExec(config *rest.Config, client kubernetes.Interface) Exec {
	return func(ctx context.Context, pod *corev1.Pod, container string, command []string) ([]byte, error) {
		request := client.CoreV1().RESTClient().Get().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
		if err != nil {
			return nil, err
		}
		ctx = klog.NewContext(ctx, klog.Logger{}) // it would log what is also in its error
		stdout, stderr := &bounded{room: stdoutBytes}, &bounded{room: logBytes}
		err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
		if refused := (*httpstream.UpgradeFailureError)(nil); errors.As(err, &refused) && refused.Cause.Error() != "" {
			err = refused.Cause // the API server's own error says more than the websocket's
		}
		if line := lastLine(stderr.String()); err != nil && line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
		return stdout.Bytes(), err
	}
}

// bounded is a buffer with a maximum size. A stream that is cut off may still write to it
// while it is read. It has no method ReadFrom, which io.Copy would use, past the maximum.
type bounded struct {
	mu   sync.Mutex
	text []byte
	room int
}

func (b *bounded) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.text)+len(text) > b.room {
		return 0, fmt.Errorf("the program prints more than %d bytes", b.room)
	}
	b.text = append(b.text, text...)
	return len(text), nil
}

// Bytes returns what was written until now.
func (b *bounded) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.text)
}

func (b *bounded) String() string { return string(b.Bytes()) }

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
