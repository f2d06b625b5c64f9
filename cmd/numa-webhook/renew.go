package main

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/certificate"
)

const renewUsage = `Usage: numa-webhook renew --namespace NAMESPACE --secret NAME --names LIST [flags]

Makes the webhook's certificate and keeps it valid: it has the API server trust a new
one, waits a minute, and writes it to the Secret, which the webhook's pods mount. It
answers no reviews, and reads nothing that users of the cluster can write.

`

// runRenew renews the certificate until ctx ends.
func runRenew(ctx context.Context, args []string, stdout io.Writer) error {
	var o certificate.Options
	var names, kubeconfig string
	var verbosity int
	flags := flag.NewFlagSet("numa-webhook renew", flag.ContinueOnError)
	flags.StringVar(&o.Namespace, "namespace", "", "`namespace` of the Secret")
	flags.StringVar(&o.Secret, "secret", "", "`name` of the Secret with the certificate; it must exist, and may be empty at first")
	flags.StringVar(&names, "names", "", "`list` of DNS names and addresses by which the API server reaches the webhook, such as NAME.NAMESPACE.svc")
	flags.StringVar(&o.Validating, "validating-configuration", "", "`name` of the ValidatingWebhookConfiguration that must trust the certificate")
	flags.StringVar(&o.Mutating, "mutating-configuration", "", "`name` of the MutatingWebhookConfiguration that must trust the certificate")
	addCommon(flags, &kubeconfig, &verbosity)
	if err := parse(flags, args, renewUsage, stdout, "namespace", "secret", "names"); err != nil {
		return err
	}
	if err := cli.SetVerbosity(verbosity); err != nil {
		return err
	}
	o.Names = strings.Split(names, ",")
	var err error
	if o.Client, err = newClient(kubeconfig); err != nil {
		return err
	}
	return certificate.Renew(ctx, o)
}
