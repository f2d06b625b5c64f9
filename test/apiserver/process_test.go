package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// process is the daemon itself, on a machine that is a folder.
type process struct {
	*exec.Cmd
	log     *bytes.Buffer
	address string
}

// buildDaemon returns dra-numa.
func buildDaemon(t *testing.T) string {
	t.Helper()
	return build(t, "dra-numa", "DRA_NUMA")
}

// build returns the path of one of our programs. It compiles the program unless the
// environment variable names one.
func build(t *testing.T, name, variable string) string {
	t.Helper()
	if program := os.Getenv(variable); program != "" {
		return program
	}
	program := filepath.Join(t.TempDir(), name)
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/"+name).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return program
}

// machineFolder is a node of the rig without cgroups.
func machineFolder(t *testing.T) string {
	t.Helper()
	dir := sample.Folder(t, "rig")
	for name, text := range map[string]string{
		"proc/sys/kernel/random/boot_id": "8a6d0a4e-3f57-4d6c-9a50-5b3d5ad5a9f1\n", "kubelet/plugins_registry/keep": "",
		"kubelet/plugins/dra.numa-hook/numa-pin": "#!/bin/sh\n", // the daemon tries it
	} {
		files.Write(t, filepath.Join(dir, name), text)
	}
	keep(t, filepath.Join(dir, "kubelet/plugins/dra.numa"), strings.TrimSpace(files.Read(t, filepath.Join(dir, "proc/sys/kernel/random/boot_id"))))
	if err := os.Chmod(filepath.Join(dir, "kubelet/plugins/dra.numa-hook/numa-pin"), 0o755); err != nil {
		t.Fatal(err)
	}
	register(t, filepath.Join(dir, "kubelet/plugins_registry"))
	return dir
}

// run starts a daemon, which is stopped when the test ends. The environment variable
// names its kubeconfig.
func run(t *testing.T, variable, program, dir, node string, flags ...string) process {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0") // connections and tests beside this one have ports of 127.0.0.1
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	flags = append(flags, "--node-name="+node, "--machine-root="+dir, "--kubelet-root="+dir+"/kubelet", "--cdi-dir="+dir+"/cdi",
		"--cgroup-root="+dir+"/none", "--nri-socket=", "--listen="+address, "--kubeconfig="+os.Getenv(variable))
	p := process{Cmd: exec.Command(program, flags...), log: &bytes.Buffer{}, address: address}
	p.Stderr = p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("log of a daemon:\n%s", p.log)
		}
	})
	return p
}

func (p process) stop(t *testing.T) {
	t.Helper()
	if p.ProcessState != nil {
		return
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("daemon ended: %v", err)
	}
}

// answers waits for an answer of /readyz.
func (p process) answers(t *testing.T, want string) {
	t.Helper()
	within(t, patience, func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/readyz", nil)
		if err != nil {
			return err.Error()
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if got := fmt.Sprintf("%d %s", answer.StatusCode, strings.TrimSpace(string(text))); err != nil || got != want {
			return fmt.Sprintf("/readyz = %q, %v, want %q", got, err, want)
		}
		return ""
	})
}

// capacities are those of a node's devices, one text each.
func capacities(t *testing.T, admin kubernetes.Interface, node string) (all []string) {
	t.Helper()
	for _, device := range nodeDevices(t, admin, node) {
		text := device.Name
		for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
			amount := device.Capacity[name].Value
			text += fmt.Sprintf(" %s=%s", name, amount.String())
		}
		all = append(all, text)
	}
	return all
}

func join(texts []string) string { return "[" + strings.Join(texts, "; ") + "]" }

// TestHotPlugIsPublished changes the machine under a daemon, and then nothing.
func TestHotPlugIsPublished(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	node, dir := "hot-plug", machineFolder(t)
	createNode(t, admin, node)
	daemon := run(t, "APISERVER_KUBECONFIG", buildDaemon(t), dir, node)
	daemon.answers(t, "200 ok")
	before := capacities(t, admin, node)
	if len(before) != 4 || !strings.HasPrefix(before[3], "numa-3 cpu=4 ") {
		t.Fatalf("devices %s", join(before))
	}
	system := filepath.Join(dir, "sys/devices/system")
	files.Write(t, system+"/node/node3/hugepages/hugepages-2048kB/nr_hugepages", "24\n")
	within(t, 5*time.Second, func() string {
		now := capacities(t, admin, node)
		if len(now) != 4 || !slices.Equal(now[:3], before[:3]) || !strings.Contains(now[3], "hugepages2Mi=48Mi") {
			return "the devices are " + join(now)
		}
		return ""
	})
	files.Write(t, system+"/cpu/online", "0-14\n")
	files.Write(t, system+"/cpu/cpu15/online", "0\n")
	files.Write(t, system+"/node/node3/cpulist", "12-14\n")
	within(t, 5*time.Second, func() string {
		if now := capacities(t, admin, node); len(now) != 4 || !strings.HasPrefix(now[3], "numa-3 cpu=2 ") { // two threads a core: 3 CPUs are one
			return "the devices are " + join(now)
		}
		return ""
	})
	daemon.answers(t, "200 ok")
	idle := versions(t, admin, node)
	time.Sleep(5 * time.Second)
	if now := versions(t, admin, node); now != idle {
		t.Errorf("slices %s, then %s: written though nothing has changed", idle, now)
	}
	logged := strings.Count(daemon.log.String(), "Machine has changed")
	if logged == 0 || logged > 4 { // a change of three files may be seen in parts
		t.Errorf("the machine has changed %d times", logged)
	}
}

// versions tells every write of the node's slices.
func versions(t *testing.T, admin kubernetes.Interface, node string) (all string) {
	t.Helper()
	for _, slice := range nodeSlices(t, admin, node) {
		all += slice.Name + "@" + slice.ResourceVersion + " "
	}
	return all
}

// TestDaemonsTakeTurns updates a daemon as a DaemonSet with surge does, and has
// the slices deleted as a kubelet does that starts.
func TestDaemonsTakeTurns(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	node, dir, program := "turns", machineFolder(t), buildDaemon(t)
	createNode(t, admin, node)
	first := run(t, "APISERVER_KUBECONFIG", program, dir, node)
	first.answers(t, "200 ok")
	second := run(t, "APISERVER_KUBECONFIG", program, dir, node)
	second.answers(t, "200 standby: another dra-numa is running on this node")
	published := versions(t, admin, node)
	first.answers(t, "200 ok")
	first.stop(t)
	second.answers(t, "200 ok")
	if now := versions(t, admin, node); now != published {
		t.Errorf("slices %s, with the second daemon %s", published, now)
	}
	own := metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + node}
	if err := admin.ResourceV1().ResourceSlices().DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, own); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Second, func() string {
		if len(nodeDevices(t, admin, node)) == 0 {
			return "there are no slices"
		}
		return ""
	})
}
