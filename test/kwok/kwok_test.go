// Package kwok runs the commands of docs/kwok.md with KWOK, on an API server and a scheduler
// of the rig.
package kwok

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// cluster is the line of the page that makes a cluster, which the rig has done.
const cluster = "kwokctl create cluster\n"

// shell runs a script with kubectl and its plugin.
func shell(t *testing.T, script string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Env = append(os.Environ(), "KUBECONFIG="+setting(t, "KWOK_KUBECONFIG"),
		"PATH="+filepath.Dir(setting(t, "KUBECTL"))+":"+filepath.Dir(setting(t, "KUBECTL_NUMA"))+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v in\n%s\n%s", err, script, output)
	}
	return string(output)
}

func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Skipf("%s is not set; make kwok sets it", name)
	}
	return value
}

// stages are what kwokctl gives the program: how nodes get ready, and pods run.
func stages(t *testing.T) (flags []string) {
	t.Helper()
	for _, pattern := range []string{"node/fast/node-*.yaml", "node/heartbeat-with-lease/node-*.yaml", "pod/fast/pod-*.yaml"} {
		names, err := filepath.Glob(setting(t, "KWOK_SOURCE") + "/kustomize/stage/" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("KWOK has no %s: %v", pattern, err)
		}
		for _, name := range names {
			flags = append(flags, "--config", name)
		}
	}
	return flags
}

func TestPageRuns(t *testing.T) {
	program := exec.CommandContext(t.Context(), setting(t, "KWOK"), append(stages(t), "--kubeconfig", setting(t, "KWOK_KUBECONFIG"),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")...)
	program.Stderr = os.Stderr
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(files.Read(t, "../../docs/kwok.md"), -1)
	if len(blocks) != 2 || !strings.HasPrefix(blocks[0][1], cluster) {
		t.Fatalf("the page has %d blocks of commands, want 2, of which the first begins with %q", len(blocks), cluster)
	}
	shell(t, strings.TrimPrefix(blocks[0][1], cluster))
	shell(t, `kubectl wait --for=condition=Ready --timeout=2m node/kwok-1 node/kwok-2 node/kwok-3`)
	shell(t, `kubectl wait --for=create --timeout=1m serviceaccount/default`) // the control plane is young
	said := shell(t, blocks[1][1])
	if !strings.Contains(said, "asks for 40 cpu of one device") {
		t.Errorf("explain does not say that no zone is large enough:\n%s", said)
	}
	shell(t, `kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=2m pod/fits`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		claim := shell(t, `kubectl get resourceclaims -o jsonpath='{range .items[*]}{.metadata.ownerReferences[0].name} {.status.allocation.devices.results[*].device} {.status.allocation.devices.results[*].consumedCapacity.cpu}{"\n"}{end}'`)
		if regexp.MustCompile(`(?m)^fits numa-\d 24$`).MatchString(claim) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the claims are\n%swant one of pod fits with 24 CPUs of a zone", claim)
		}
	}
	if phase := shell(t, `kubectl get pod large -o jsonpath='{.status.phase} {.spec.nodeName}'`); phase != "Pending " {
		t.Errorf("the pod that fits nowhere is %q, want Pending and no node", phase)
	}
}
