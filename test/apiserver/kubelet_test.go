package apiserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// register registers plugins whose sockets appear in a folder, as the kubelet does, until
// the test ends. No kubelet runs here, and a daemon that none has registered is not ready.
func register(t *testing.T, registry string) {
	t.Helper()
	ctx, done := t.Context(), make(chan struct{})
	go func() {
		defer close(done)
		registered := make(map[string]time.Time) // when the socket was made: another one may have its inode
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			sockets, _ := filepath.Glob(registry + "/*.sock") // the pattern is right
			for _, socket := range sockets {
				now, err := os.Stat(socket)
				if err == nil && !now.ModTime().Equal(registered[socket]) && accept(ctx, socket) == nil {
					registered[socket] = now.ModTime()
				}
			}
		}
	}()
	t.Cleanup(func() { <-done })
}

// accept asks a plugin who it is and tells it that it is registered.
func accept(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := registerapi.NewRegistrationClient(connection)
	if _, err := client.GetInfo(ctx, &registerapi.InfoRequest{}); err != nil {
		return err
	}
	_, err = client.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true})
	return err
}
