package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// Exec runs a program in a container of a pod and returns what it printed on
// stdout. An error of the program has the last line that it printed on stderr.
type Exec func(ctx context.Context, pod *corev1.Pod, container string, command []string) (stdout []byte, err error)

// stdoutBytes bounds what a program may make its reader hold. The state of a node
// with a thousand claims is 2 MiB.
const stdoutBytes = 64 << 20

// NewExec runs programs through the API server, over a websocket, which every
// server has that the driver works with. The user needs the verbs get and create
// on pods/exec.
func NewExec(config *rest.Config, client kubernetes.Interface) Exec {
	return func(ctx context.Context, pod *corev1.Pod, container string, command []string) ([]byte, error) {
		request := client.CoreV1().RESTClient().Get().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
		if err != nil {
			return nil, err
		}
		stdout, stderr := &bounded{room: stdoutBytes}, &bounded{room: logBytes}
		err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
		if refused := (*httpstream.UpgradeFailureError)(nil); errors.As(err, &refused) && refused.Cause.Error() != "" {
			err = refused.Cause // a refusal of the API server is one, whatever it was asked over
		}
		if line := lastLine(stderr.String()); err != nil && line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
		return stdout.Bytes(), err
	}
}

// bounded is a buffer that takes no more than it has room for.
type bounded struct {
	bytes.Buffer
	room int
}

func (b *bounded) Write(text []byte) (int, error) {
	if b.Len()+len(text) > b.room {
		return 0, fmt.Errorf("it prints more than %d bytes", b.room)
	}
	return b.Buffer.Write(text)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
