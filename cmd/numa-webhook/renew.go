package main

import (
	"context"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/logging"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/certificate"
)

// renew renews the certificate until ctx ends.
func renew(ctx context.Context, c cli.Call) error {
	var o certificate.Options
	var names, kubeconfig string
	var log logging.Options
	flags := c.Flags()
	flags.StringVar(&o.Namespace, "namespace", "", "`namespace` of the Secret")
	flags.StringVar(&o.Secret, "secret", "", "`name` of the Secret with the certificate; it must exist, and may be empty at first")
	flags.StringVar(&names, "names", "", "`list` of DNS names and addresses by which the API server reaches the webhook, such as NAME.NAMESPACE.svc")
	flags.StringVar(&o.Validating, "validating-configuration", "", "`name` of the ValidatingWebhookConfiguration that must trust the certificate")
	flags.StringVar(&o.Mutating, "mutating-configuration", "", "`name` of the MutatingWebhookConfiguration that must trust the certificate")
	addCommon(flags, &kubeconfig, &log)
	if err := c.ParseAll(flags, "namespace", "secret", "names"); err != nil {
		return err
	}
	if err := log.Apply(); err != nil {
		return err
	}
	o.Names = strings.Split(names, ",")
	var err error
	if o.Client, err = newClient(kubeconfig); err != nil {
		return err
	}
	return certificate.Renew(ctx, o)
}
