package main

import (
	"context"
	"flag"
	"io"
	"net"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

const usage = `Usage: numa-webhook --namespace NAMESPACE --secret NAME --names LIST [flags]

Answers the API server's admission reviews: refuses claims, templates and device
classes that the driver could make nothing of, warns of what will not work, and
has pods request what their claims hold where a configuration asks /mutate.

`

// options are the flags as given.
type options struct {
	webhook.Options
	listen     string
	names      string
	kubeconfig string
	verbosity  int
}

// run is the admission webhook until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parseFlags(args, stdout)
	if err != nil {
		return err
	}
	if err := cli.SetVerbosity(o.verbosity); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "numa-webhook"
	if o.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if o.Listener, err = net.Listen("tcp", o.listen); err != nil {
		return err
	}
	return webhook.Run(ctx, o.Options)
}

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("numa-webhook", flag.ContinueOnError)
	flags.StringVar(&o.Namespace, "namespace", "", "`namespace` of the Secret")
	flags.StringVar(&o.Secret, "secret", "", "`name` of the Secret that keeps the certificate; it has to be there, empty at first")
	flags.StringVar(&o.names, "names", "", "`list` of names by which the API server reaches the webhook, such as NAME.NAMESPACE.svc")
	flags.StringVar(&o.Validating, "validating-configuration", "", "`name` of the ValidatingWebhookConfiguration that is to trust the certificate")
	flags.StringVar(&o.Mutating, "mutating-configuration", "", "`name` of the MutatingWebhookConfiguration that is to trust the certificate")
	flags.StringVar(&o.listen, "listen", ":8443", "`address` of /validate, /mutate and /readyz")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`; default the service account of the pod")
	cli.AddVerbosity(flags, &o.verbosity)
	if err := cli.Parse(flags, args, usage, stdout); err != nil {
		return options{}, err
	}
	if err := cli.FlagsOnly(flags); err != nil {
		return options{}, err
	}
	for _, needed := range []struct{ flag, value string }{{"namespace", o.Namespace}, {"secret", o.Secret}, {"names", o.names}} {
		if needed.value == "" {
			return options{}, cli.Usagef("--%s is missing", needed.flag)
		}
	}
	o.Names = strings.Split(o.names, ",")
	return o, nil
}
