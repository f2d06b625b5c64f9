package kubeletplugin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// dead fails the test unless the plugin is dead because of that; "" for alive.
func dead(t *testing.T, p *Plugin, want string) {
	t.Helper()
	err := p.Alive(t.Context())
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("not alive because of %v, want %q", err, want)
	}
}

func TestDaemonWithoutItsSocketsIsDead(t *testing.T) {
	s := startServed(t, newCluster(), t.TempDir(), t.TempDir())
	dead(t, s.Plugin, "")
	for _, path := range []string{s.sockets.plugin.path, s.sockets.registrar.path} {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		dead(t, s.Plugin, "call "+path+": ")
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	dead(t, s.Plugin, "")
	if got := s.Figures().Prepare; got.Done.Count+got.Failed.Count != 0 {
		t.Errorf("the daemon counts %d calls of its own", got.Done.Count+got.Failed.Count)
	}
}

// namedPlugin is a driver that has this name.
type namedPlugin struct {
	registerapi.UnimplementedRegistrationServer
	name string
}

func (p namedPlugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Name: p.name}, nil
}

// The first driver still serves the connections that it has when another one has taken
// the file.
func TestSocketOfAnotherDriverIsNotOurs(t *testing.T) {
	s := sockets{registrar: ownSocket{path: t.TempDir() + "/reg.sock"}}
	defer s.close()
	for _, row := range []struct{ name, want string }{
		{driver.Name, "call : "}, // it has no other socket
		{"other", `it is the socket of "other", want "dra.numa"`},
	} {
		if err := os.Remove(s.registrar.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", s.registrar.path)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		registerapi.RegisterRegistrationServer(server, namedPlugin{name: row.name})
		go func() { _ = server.Serve(listener) }()
		defer server.Stop()
		if err := s.call(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("socket of %s: error %v, want %q", row.name, err, row.want)
		}
	}
}

// A disk that hangs keeps an operation, and with it the lock, for ever.
func TestDaemonThatHangsIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		config := testConfig()
		config.Hugepages = func(cpuset.Set, map[string][]string) (driver.Hugepages, error) {
			<-hang
			return driver.Hugepages{}, errors.New("input/output error")
		}
		p := &Plugin{driver: recoveredWith(t, config), looks: looks{began: time.Now()}}
		go func() {
			claim := allocated("c", "uid-1")
			claim.Status.Allocation.Devices.Results[0].ConsumedCapacity["hugepages2Mi"] = resource.MustParse("2Mi")
			if _, _, err := p.driver.Prepare(claim, nil); err == nil {
				t.Error("a claim is prepared without its hugepages")
			}
		}()
		time.Sleep(stuckAfter)
		synctest.Wait()
		p.Looked()
		dead(t, p, "call ") // it has no sockets
		time.Sleep(time.Second)
		p.Looked()
		dead(t, p, "an operation has held the driver's lock for 1m1s")
		close(hang)
		synctest.Wait()
		dead(t, p, "call ")
		time.Sleep(stuckAfter + time.Second)
		dead(t, p, "the last look at the node ended 1m1s ago")
	})
}

func TestHealthzIsWhetherTheDaemonCanGoOn(t *testing.T) {
	var r Readiness
	ask := func() (int, string) {
		recorder := httptest.NewRecorder()
		r.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return recorder.Code, recorder.Body.String()
	}
	if code, text := ask(); code != http.StatusOK || text != "ok\n" {
		t.Errorf("a daemon that starts: %d %q", code, text)
	}
	err := errors.New("the disk hangs")
	r.Live(func(context.Context) error { return err })
	if code, text := ask(); code != http.StatusServiceUnavailable || text != "the disk hangs\n" {
		t.Errorf("a daemon that hangs: %d %q", code, text)
	}
	err = nil
	if code, text := ask(); code != http.StatusOK || text != "ok\n" {
		t.Errorf("a daemon that goes on: %d %q", code, text)
	}
}
