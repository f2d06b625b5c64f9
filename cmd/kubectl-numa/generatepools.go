package main

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
)

func generatePoolsCommand(c cli, command *cobra.Command) runner {
	var machine origin
	machine.addTo(command)
	output := newPrinter(formatYAML, formatJSON, formatPath)
	output.addTo(command)
	return func(context.Context, []string) error {
		read, err := machine.read()
		if err != nil {
			return err
		}
		settings, err := caches.Suggest(&read)
		if err != nil {
			return &failure{err}
		}
		return output.print(c.stdout, objects("configuration", []deviceclasses.NodeConfig{{
			TypeMeta:     metav1.TypeMeta{APIVersion: deviceclasses.APIVersion, Kind: deviceclasses.NodeConfigKind},
			NodeSettings: settings,
		}}))
	}
}
