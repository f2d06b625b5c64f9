package main

import (
	"context"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/logging"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/templates"
)

// makeTemplates makes the templates of translated pods until ctx ends.
func makeTemplates(ctx context.Context, c cli.Call) error {
	var o templates.Options
	var kubeconfig string
	var log logging.Options
	flags := c.Flags()
	flags.StringVar(&o.Namespace, "namespace", "", "`namespace` of the Lease")
	flags.StringVar(&o.Lease, "lease", "", "`name` of the Lease, which the replica holds that works")
	addTranslation(flags, "", &o.Translate)
	addCommon(flags, &kubeconfig, &log)
	if err := c.ParseAll(flags, "namespace", "lease"); err != nil {
		return err
	}
	if err := log.Apply(); err != nil {
		return err
	}
	var err error
	if o.Identity, err = os.Hostname(); err != nil { // the name of the pod
		return err
	}
	if o.Client, err = newClient(kubeconfig); err != nil {
		return err
	}
	return templates.Run(ctx, o)
}
