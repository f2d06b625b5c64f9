// Package podexec answers for an API server that runs programs in pods.
package podexec

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Run is what a program does: it is told where it runs, and what. An exit code
// that is not 0 is its failure.
type Run func(container string, command []string) (stdout, stderr string, exitCode int)

// Handler answers requests of the subresource exec over websockets.
func Handler(run Run) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
			remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
				wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel,
			}},
		})
		_, channels, err := conn.Open(w, r)
		if err != nil {
			return // the client is told by what Open has written
		}
		defer conn.Close()
		stdout, stderr, exitCode := run(query.Get("container"), query["command"])
		status := metav1.Status{Status: metav1.StatusSuccess}
		if exitCode != 0 {
			status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: "command terminated with non-zero exit code"}
			status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: string(rune('0' + exitCode))}}}
		}
		ended, _ := json.Marshal(status) // it has nothing that cannot be
		for channel, text := range map[int]string{remotecommand.StreamStdOut: stdout, remotecommand.StreamStdErr: stderr} {
			_, _ = channels[channel].Write([]byte(text)) // who has gone is not told
		}
		_, _ = channels[remotecommand.StreamErr].Write(ended)
	})
}
