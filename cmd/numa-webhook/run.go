package main

import (
	"context"
	"flag"
	"io"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

const usage = `Usage: numa-webhook --namespace NAMESPACE --secret NAME --names LIST [flags]

Answers the API server's admission reviews. /validate refuses claims, claim
templates and device classes that the driver cannot use, and warns of mistakes.
/mutate raises the requests of pods to what their claims hold. With --enforce,
/enforce refuses pods that request less than their claims may hold.

`

// How many requests a second the API server gets. Each claim that a new pod names is one
// request, and the pod waits for it.
const (
	clientQPS   = 50
	clientBurst = 200
)

// options are the values of the flags.
type options struct {
	webhook.Options
	listen      string
	names       string
	controllers string
	kubeconfig  string
	verbosity   int
}

// run serves the admission webhook until ctx ends.
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
	config.QPS, config.Burst = clientQPS, clientBurst
	config.ContentType = runtime.ContentTypeProtobuf // pods and slices are large
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
	flags.StringVar(&o.Secret, "secret", "", "`name` of the Secret with the certificate; it must exist, and may be empty at first")
	flags.StringVar(&o.names, "names", "", "`list` of DNS names and addresses by which the API server reaches the webhook, such as NAME.NAMESPACE.svc")
	flags.StringVar(&o.Validating, "validating-configuration", "", "`name` of the ValidatingWebhookConfiguration that must trust the certificate")
	flags.StringVar(&o.Mutating, "mutating-configuration", "", "`name` of the MutatingWebhookConfiguration that must trust the certificate")
	flags.BoolVar(&o.Enforced, "enforce", false, "raise requests to all that claims may hold, in each pod that names them; needs the right to list pods")
	flags.StringVar(&o.controllers, "claim-controllers", "", "`list` of users as which Kubernetes creates claims for pods; saves time with --enforce")
	flags.StringVar(&o.listen, "listen", ":8443", "`address` and port of the server")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: the service account of the pod)")
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
	if o.controllers != "" {
		o.ClaimControllers = strings.Split(o.controllers, ",")
	}
	return o, nil
}
