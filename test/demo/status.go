package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// showStatus writes what the program kubectl-numa draws of the cluster. The claims in the
// drawing come from the API server, while the table comes from the kernels.
func showStatus(ctx context.Context, stdout io.Writer, program, kubeconfig string) error {
	if _, err := fmt.Fprintln(stdout); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, "status")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s status: %w", program, err)
	}
	return nil
}

// printNext writes commands that a user of `make demo` can copy.
func printNext(stdout io.Writer, program, namespace string) error {
	_, err := fmt.Fprintf(stdout, `
The cluster keeps running. Commands to try:
  export KUBECONFIG=$(bin/cluster path kubeconfig)
  %[1]s status --watch
  %[1]s explain pod alpha -n %[2]s
  make cluster-down
`, program, namespace)
	return err
}

// checkProgram finds a wrong path before the demo waits for its pods.
func checkProgram(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("-kubectl-numa: %w", err)
	}
	return nil
}
