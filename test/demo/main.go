// Command demo applies the manifests of the demo folder to a cluster with the
// driver installed, waits for their pods and prints what each holds. The table
// comes from the kernels of the nodes; the driver is not asked. With -kubectl-numa,
// it ends with the drawing of `kubectl numa status` and with commands to try.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
)

// options is what the command line says.
type options struct {
	kubeconfig, namespace, image string
	// kubectlNuma is the path of a program, "" to do without its drawing.
	kubectlNuma string
	timeout     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", client.DefaultKubeconfig(), "path of the cluster's kubeconfig")
	flag.StringVar(&o.namespace, "namespace", "numa-demo", "namespace of the demo's pods, made if it is missing")
	flag.StringVar(&o.image, "observer-image", demo.Image, "image of the pod that reads a node's kernel")
	flag.StringVar(&o.kubectlNuma, "kubectl-numa", "", "path of kubectl-numa, to draw the cluster with and to name in commands to try (default: no drawing)")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long all of it may take")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: error: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: error: %v\n", err)
		os.Exit(1)
	}
}
