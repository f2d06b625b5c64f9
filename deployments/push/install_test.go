package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
)

var (
	installed = flag.String("version", "", "the version that is installed, such as v0.1.0-rc.1; empty: nothing is")
	where     = flag.String("registry", "", "the registry that the release was made for, such as localhost:5007/team. It is started there")
	cluster   = flag.String("cluster", "", "the rig's cluster that gets the driver")
)

// A user who has an empty Debian and the registry installs the driver with the lines of README, the plugin with
// krew, and has a pod with CPUs of its own. The node pulls the image from the registry, too.
func TestInstallOnNode(t *testing.T) {
	if *installed == "" {
		t.Skip("it needs a node: make e2e-install")
	}
	host, _, _ := strings.Cut(*where, "/")
	serve(t, host)
	if err := run(t.Context(), root+"/bin/release", *installed, *where, t.Output()); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	// In the node, this machine is the gateway.
	onNode(t, fmt.Sprintf(`mkdir -p /etc/containerd/certs.d/%[1]s
gateway=$(ip route | awk '/^default/ { print $3 }')
printf '[host."http://%%s:%[2]s"]\ncapabilities = ["pull", "resolve"]\n' "$gateway" >/etc/containerd/certs.d/%[1]s/hosts.toml`, host, port))

	u := newUser(t)
	install := strings.ReplaceAll(block(t, root+"/README.md", "## Install"), "REGISTRY", *where)
	// What a registry with TLS and a release do not need.
	install = strings.ReplaceAll(install, " --create-namespace", " --create-namespace --plain-http --version "+strings.TrimPrefix(*installed, "v")+" --wait --timeout 20m")
	if got := u.run(install); !strings.Contains(got, "dra.numa") {
		t.Errorf("the install lines of README print\n%s, want ResourceSlices", got)
	}
	images := strings.Fields(u.run(`kubectl get pods -n dra-numa -o jsonpath='{.items[*].status.containerStatuses[*].imageID}'`))
	for _, id := range images {
		if !strings.HasPrefix(id, *where+"/dra-driver-numa@sha256:") {
			t.Errorf("a container of the driver has the image %s, want one of %s", id, *where)
		}
	}
	if len(images) == 0 {
		t.Error("there are no pods of the driver")
	}

	download(t, filepath.Join(u.root, home))
	manifest := strings.ReplaceAll(block(t, root+"/docs/kubectl-numa.md", "## Installing"), "v0.1.0", *installed)
	u.run(manifest)
	if got := u.run("kubectl numa version"); !strings.Contains(got, *installed) {
		t.Errorf("kubectl numa version prints\n%s, want %s", got, *installed)
	}
	u.run("kubectl numa generate pod first --image busybox:1.37 --cpus 2 --memory 64Mi -- sleep infinity | kubectl apply -f - && kubectl wait --for=condition=Ready pod/first --timeout=10m")
	allowed := u.run("kubectl exec first -- grep Cpus_allowed_list /proc/1/status")
	if !regexp.MustCompile(`^Cpus_allowed_list:\s(\d+-\d+|\d+,\d+)\n$`).MatchString(allowed) {
		t.Errorf("the kernel says %q of the pod, want two CPUs", allowed)
	}
}

// serve starts a registry at an address of this machine.
func serve(t *testing.T, host string) {
	t.Helper()
	listener, err := net.Listen("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// download writes the files of the release to a folder, as oras pull does.
func download(t *testing.T, folder string) {
	t.Helper()
	repository, err := remote.NewRepository(*where + "/files/dra-driver-numa")
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	files, err := file.New(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if _, err := oras.Copy(t.Context(), repository, *installed, files, *installed, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
}

// block returns the first commands below a heading of a page.
func block(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n"+heading+"\n")
	_, after, _ := strings.Cut(section, "\n```sh\n")
	commands, _, found := strings.Cut(after, "```\n")
	if !found {
		t.Fatalf("%s has no commands below %s", page, heading)
	}
	return commands
}

// onNode runs a script in the node.
func onNode(t *testing.T, script string) {
	t.Helper()
	output(t, "bin/cluster", "exec", "-name", *cluster, "--", "sh", "-euc", script)
}

// user has a Debian with nothing but the programs that a user of Kubernetes has.
type user struct {
	t    *testing.T
	root string
}

// home is the folder in the user's Debian that commands run in. It is empty at first.
const home = "/root"

func newUser(t *testing.T) user {
	t.Helper()
	u := user{t, t.TempDir()}
	release := strings.TrimSpace(output(t, "sh", "-euc", ". /etc/os-release; echo $VERSION_CODENAME"))
	output(t, "mmdebstrap", "--quiet", "--variant=minbase", release, u.root)
	krew := strings.TrimSpace(output(t, "go", "-C", "deployments/push", "tool", "-n", "krew"))
	for target, source := range map[string]string{
		"usr/local/bin/helm": helm(t), "usr/local/bin/kubectl": ofCluster(t, "kubectl"), "usr/local/bin/kubectl-krew": krew,
		"etc/hosts": "/etc/hosts", home + "/.kube/config": ofCluster(t, "kubeconfig"),
	} {
		output(t, "install", "-D", source, filepath.Join(u.root, target))
	}
	return u
}

// ofCluster returns the path of a file of the cluster.
func ofCluster(t *testing.T, what string) string {
	t.Helper()
	return strings.TrimSpace(output(t, "bin/cluster", "path", "-name", *cluster, what))
}

// run runs commands as the user and returns what they print.
func (u user) run(commands string) string {
	u.t.Helper()
	var out, problems bytes.Buffer
	const inside = `mount -t proc proc "$0/proc"; exec chroot "$0" env -i "$@"` // the mount ends with them
	shell := exec.CommandContext(u.t.Context(), "unshare", "--mount", "sh", "-euc", inside, u.root,
		"HOME="+home, "PATH=/usr/local/bin:/usr/bin:/bin:"+home+"/.krew/bin", "bash", "-euo", "pipefail", "-c", "cd; "+commands)
	shell.Stdout, shell.Stderr = &out, &problems
	u.t.Logf("$ %s", strings.TrimSpace(commands))
	if err := shell.Run(); err != nil {
		u.t.Fatalf("%v\n%s%s", err, &out, &problems)
	}
	return out.String()
}
