package apiserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// TestValidateOfARealCluster: nothing is found of what the chart installs, a right
// that is withdrawn is, and a bundle says the same.
func TestValidateOfARealCluster(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t)
	program := buildCLI(t)
	kubeconfig := "--kubeconfig=" + os.Getenv("APISERVER_KUBECONFIG")
	wantSaid(t, "no problems found\n", program, "validate", kubeconfig)

	roles := admin.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "dra-driver-numa", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = role.Rules[:len(role.Rules)-1] // events
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, withdrawn, program, "validate", kubeconfig, "-o", "yaml")
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	wantSaid(t, file+"\n", program, "gather", "--file", file, kubeconfig)
	wantSaid(t, withdrawn, program, "validate", "--from", file, "-o", "yaml")
}

// withdrawn is what is found without the right to report events.
const withdrawn = `apiVersion: cli.dra.numa/v1alpha1
kind: FindingList
items:
- area: driver
  check: driver-rights
  component: ServiceAccount dra-numa/dra-driver-numa
  detected: not granted
  expected: create on events.events.k8s.io
  node: ""
  setting: ClusterRole
`

// TestWhoMayNotListIsToldWhat in one line.
func TestWhoMayNotListIsToldWhat(t *testing.T) {
	clientFor(t, "APISERVER_KUBECONFIG")
	text, err := os.ReadFile(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	// As somebody whom nobody has given a right.
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	files.Write(t, kubeconfig, strings.Replace(string(text), "  user:\n", "  user:\n    as: ann\n", 1))
	command := exec.CommandContext(t.Context(), buildCLI(t), "simulate", "--kubeconfig", kubeconfig)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	err = command.Run()
	want := `kubectl-numa: error: read the cluster: list Nodes: nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope` + "\n"
	if command.ProcessState.ExitCode() != 2 || stderr.String() != want {
		t.Errorf("%v, stderr %q, want %q", err, &stderr, want)
	}
}

// wantSaid runs a command; its exit code is not looked at.
func wantSaid(t *testing.T, want, program string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	if diff := cmp.Diff(want, string(stdout)); diff != "" {
		t.Errorf("%s: %v, %s (-want +got):\n%s", command, err, &stderr, diff)
	}
}
