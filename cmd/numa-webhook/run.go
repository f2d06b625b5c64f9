package main

import (
	"context"
	"crypto/tls"
	"flag"
	"io"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/logging"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/tlsfiles"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

// How many requests a second the API server gets. Each claim that a new pod names is one
// request, and the pod waits for it.
const (
	clientQPS   = 50
	clientBurst = 200
)

// Values of --translate-on-error.
const (
	errorRefuse = "refuse"
	errorLeave  = "leave"
)

// options are the values of the flags.
type options struct {
	webhook.Options
	listen      string
	files       tlsfiles.Files
	controllers string
	translates  bool
	translation webhook.Translation
	onError     string
	kubeconfig  string
	logging     logging.Options
}

// run runs the webhook or its command until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	return cli.Program{Name: "numa-webhook", Commands: []cli.Command{
		{Name: "", Args: "--tls-cert FILE --tls-key FILE [flags]", Run: serve, About: `Answers the API server's admission reviews. /validate refuses claims, claim
templates and device classes that the driver cannot use, and warns of mistakes.
/mutate raises the requests of pods to what their claims hold. With --enforce,
/enforce refuses pods that request less than their claims may hold. With --translate,
/translate gives pods that were written for the kubelet's static managers a claim.`},
		{Name: "renew", Args: "--namespace NAMESPACE --secret NAME --names LIST [flags]", Run: renew, About: `Makes the webhook's certificate and keeps it valid: it has the API server trust a new
one, waits a minute, and writes it to the Secret, which the webhook's pods mount. It
answers no reviews, and reads nothing that users of the cluster can write.`},
		{Name: "templates", Args: "--namespace NAMESPACE --lease NAME [flags]", Run: makeTemplates, About: `Makes the ResourceClaimTemplates that translated pods name, and deletes those that no pod
has named for an hour. The flags must say what those of the webhook say. Of several
replicas, the one works that holds the Lease.`},
	}}.Run(ctx, args, stdout)
}

// serve serves the admission webhook until ctx ends.
func serve(ctx context.Context, c cli.Call) error {
	o, err := parseFlags(c)
	if err != nil {
		return err
	}
	if err := o.logging.Apply(); err != nil {
		return err
	}
	if o.Client, err = newClient(o.kubeconfig); err != nil {
		return err
	}
	if o.Listener, err = net.Listen("tcp", o.listen); err != nil {
		return err
	}
	o.Certificate = o.certificate
	return webhook.Run(ctx, o.Options)
}

// certificate is the one in the files as they are now.
func (o *options) certificate() (*tls.Certificate, error) {
	config, err := o.files.Current()
	if err != nil {
		return nil, err
	}
	return &config.Certificates[0], nil
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "numa-webhook"
	config.QPS, config.Burst = clientQPS, clientBurst
	config.ContentType = runtime.ContentTypeProtobuf // pods and slices are large
	return kubernetes.NewForConfig(config)
}

func parseFlags(c cli.Call) (*options, error) {
	o := &options{}
	o.files.Policy.MinVersion = tls.VersionTLS13
	flags := c.Flags()
	flags.StringVar(&o.files.Certificate, "tls-cert", "", "`file` with the certificate of the server, read again when it changes")
	flags.StringVar(&o.files.Key, "tls-key", "", "`file` with the key of that certificate")
	o.files.Policy.AddFlags(flags, "tls")
	flags.BoolVar(&o.Enforced, "enforce", false, "raise requests to all that claims may hold, in each pod that names them; needs the right to list pods")
	flags.StringVar(&o.controllers, "claim-controllers", "", "`list` of users as which Kubernetes creates claims for pods; saves time with --enforce")
	flags.BoolVar(&o.translates, "translate", false, "give pods that were written for the kubelet's static managers a claim, if the API server asks")
	addTranslation(flags, "translate-", &o.translation.Options)
	o.onError = errorRefuse
	choice(flags, "translate-on-error", "`what` happens to a pod that would lose something", &o.onError, errorRefuse, errorLeave)
	flags.StringVar(&o.listen, "listen", ":8443", "`address` and port of the server")
	addCommon(flags, &o.kubeconfig, &o.logging)
	if err := c.ParseAll(flags, "tls-cert", "tls-key"); err != nil {
		return nil, err
	}
	if err := o.files.Policy.Validate(); err != nil {
		return nil, err
	}
	o.MinVersion, o.CipherSuites = o.files.Policy.MinVersion, o.files.Policy.CipherSuites
	if o.translates {
		o.translation.Leave = o.onError == errorLeave
		o.Translation = &o.translation
	}
	if o.controllers != "" {
		o.ClaimControllers = strings.Split(o.controllers, ",")
	}
	return o, nil
}

// addCommon adds the flags that all commands have.
func addCommon(flags *flag.FlagSet, kubeconfig *string, log *logging.Options) {
	flags.StringVar(kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: the service account of the pod)")
	log.AddFlags(flags)
}
