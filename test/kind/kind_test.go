// Package kind tests the configuration and the script of make kind-up with kind's own types
// and program. It starts no cluster: the programs that would are stubs.
package kind

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

const folder = "../../deployments/kind"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// stubs writes programs that note how they are called, and returns their folder and the file
// of notes. The engine answers as one without any cluster, and then fails.
func stubs(t *testing.T, names ...string) (bin, notes string) {
	t.Helper()
	bin = t.TempDir()
	notes = filepath.Join(bin, "notes")
	for _, name := range names {
		script := "#!/bin/sh\necho " + name + ` "$@" >>` + notes + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin, notes
}

// called runs the script and returns the calls, with the names of temporary files cut.
func called(t *testing.T, action string, engines ...string) (calls, output string, err error) {
	t.Helper()
	bin, notes := stubs(t, append(engines, "kind", "helm", "e2e")...)
	for _, tool := range []string{"bash", "sh", "mktemp", "rm", "dirname"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), folder+"/kind.sh", action)
	command.Env = []string{"PATH=" + bin, "KIND=kind", "HELM=helm", "E2E=e2e", "IMAGE_ARCHIVE=image.tar", "FOCUS=restarts", "TMPDIR=" + bin}
	text, err := command.CombinedOutput()
	if noted, readErr := os.ReadFile(notes); readErr == nil {
		calls = regexp.MustCompile(regexp.QuoteMeta(bin)+`/tmp\S+`).ReplaceAllString(string(noted), "KUBECONFIG")
	}
	return calls, string(text), err
}

func TestScriptCallsKindAndHelm(t *testing.T) {
	for action, want := range map[string]string{
		"up": `kind create cluster --config deployments/kind/cluster.yaml --kubeconfig KUBECONFIG --wait 5m
kind load image-archive image.tar --name dra-driver-numa
helm upgrade --install dra-driver-numa deployments/helm/dra-driver-numa --kubeconfig KUBECONFIG --namespace dra-numa --create-namespace --set image.tag=dev --set kubelet.configFile=/var/lib/kubelet/config.yaml --wait --timeout 10m
`,
		"test": `kind get kubeconfig --name dra-driver-numa
e2e -test.v -test.timeout 0 -ginkgo.no-color -ginkgo.v -ginkgo.timeout 2h -kubeconfig KUBECONFIG -observer-image docker.io/library/busybox:1.37 -ginkgo.label-filter !crowd && !devices && !boot && !machine -ginkgo.focus restarts
`,
		"down": "kind delete cluster --name dra-driver-numa\n",
	} {
		calls, output, err := called(t, action, "podman")
		if err != nil {
			t.Errorf("%s: %v\n%s", action, err, output)
		}
		if calls != want {
			t.Errorf("%s calls\n%swant\n%s", action, calls, want)
		}
	}
}

func TestScriptRefusesWhatItCannotDo(t *testing.T) {
	for _, row := range []struct {
		action  string
		engines []string
		want    string
	}{
		{"up", nil, "there is no docker, podman or nerdctl"},
		{"down", nil, "there is no docker, podman or nerdctl"},
		{"start", []string{"docker"}, "usage: kind.sh up|test|down"},
	} {
		calls, output, err := called(t, row.action, row.engines...)
		if err == nil || !strings.Contains(output, row.want) || calls != "" {
			t.Errorf("%s: %v, calls %q, output %q; want %q", row.action, err, calls, output, row.want)
		}
	}
}

// Types of kind, and of the files that it hands on as text.
func TestConfigurationIsOfKindsTypes(t *testing.T) {
	var cluster v1alpha4.Cluster
	if err := yaml.UnmarshalStrict([]byte(read(t, folder+"/cluster.yaml")), &cluster); err != nil {
		t.Fatal(err)
	}
	workers := 0
	for _, node := range cluster.Nodes {
		if node.Role == v1alpha4.WorkerRole {
			workers++
		}
	}
	if cluster.Kind != "Cluster" || cluster.APIVersion != "kind.x-k8s.io/v1alpha4" || workers < 2 {
		t.Errorf("%s %s with %d workers", cluster.Kind, cluster.APIVersion, workers)
	}
	if script := read(t, folder+"/kind.sh"); !strings.Contains(script, "\nname="+cluster.Name+"\n") {
		t.Errorf("the script has another name than the cluster %q", cluster.Name)
	}
	// The pods of README, demo and suite are for the gates that Kubernetes has by default.
	if len(cluster.FeatureGates) > 0 {
		t.Errorf("the cluster has the feature gates %v", cluster.FeatureGates)
	}
	for _, patch := range cluster.KubeadmConfigPatches {
		var kubelet struct {
			Kind, APIVersion, CPUManagerPolicy, MemoryManagerPolicy, ReservedSystemCPUs string
		}
		if err := yaml.UnmarshalStrict([]byte(patch), &kubelet); err != nil || kubelet.Kind != "KubeletConfiguration" || kubelet.CPUManagerPolicy != "none" || kubelet.MemoryManagerPolicy != "None" {
			t.Errorf("patch %+v, %v", kubelet, err)
		}
	}
}

// kind itself reads and validates the configuration before it asks the engine for nodes, and
// refuses another one.
func TestKindTakesTheConfiguration(t *testing.T) {
	program, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "kind").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	notes := filepath.Join(bin, "notes")
	// An engine without nodes, which ends at the first image that it has to look for.
	docker := "#!/bin/sh\necho \"$@\" >>" + notes + "\ncase $1 in info) echo {};; ps|-v|version) ;; *) echo no engine >&2; exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	create := func(config string) string {
		path := filepath.Join(bin, "cluster.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "create", "cluster", "--config", path, "--kubeconfig", filepath.Join(bin, "kubeconfig"))
		command.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "KIND_EXPERIMENTAL_PROVIDER=docker", "HOME=" + bin}
		output, err := command.CombinedOutput()
		if err == nil {
			t.Fatalf("kind has made a cluster without an engine: %s", output)
		}
		return string(output)
	}
	config := read(t, folder+"/cluster.yaml")
	if output := create(config); !strings.Contains(output, `failed to pull image`) {
		t.Errorf("with the configuration, kind says %s", output)
	}
	if output := create(strings.ReplaceAll(config, "role: worker", "rolle: worker")); !strings.Contains(output, "rolle") {
		t.Errorf("with an unknown field, kind says %s", output)
	}
	if output := create(strings.ReplaceAll(config, "role: control-plane", "role: worker")); !strings.Contains(output, "control-plane") {
		t.Errorf("without a control plane, kind says %s", output)
	}
}
