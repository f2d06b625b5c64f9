package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// features is the command features with its flags.
type features struct{ reading }

func (c cli) featuresCommand() *cobra.Command {
	f := features{c.reads()}
	command := &cobra.Command{
		Use:   "features",
		Short: "Show what the versions and feature gates of a cluster make possible for the driver",
		Long: `Show what the versions and feature gates of a cluster make possible for the
driver: one row for each feature.

features reads the feature gates of the API server and of the kubelets, if you
are allowed to read them, and which exclusivity the zones have. The gates of the
scheduler cannot be read through the API server. They are assumed to be the
same.`,
		Example: c.examples(`
# what can be used in this cluster?
features
# the features that are not on
features -o json | jq '.features[] | select(.state != "on")'`),
		Args: c.flagsOnly,
		RunE: withContext(f.run),
	}
	f.from.addDiagnosisTo(command)
	f.from.addDriverTo(command)
	f.output.addOutputTo(command)
	return command
}

// featureList is the answer of features.
type featureList struct {
	Kubernetes string              `json:"kubernetes"` // version of the API server
	Features   []diagnosis.Feature `json:"features"`
}

func (f *features) run(ctx context.Context) error {
	facts, err := f.from.Facts(ctx)
	if err != nil {
		return err
	}
	for _, unread := range facts.Unread {
		if unread.Component == "kube-apiserver" || unread.Component == "kubelet" {
			f.note("the %s of %s cannot be read: %s", unread.Setting, strings.TrimSpace(unread.Component+" "+unread.Node), message.OneLine(unread.Why))
		}
	}
	answer := featureList{facts.Version, diagnosis.Features(facts)}
	return f.print("features", kindFeatures, answer, func() string {
		rows := [][]string{{"FEATURE", "STATE", "NEEDS", "DETECTED"}}
		for _, feature := range answer.Features {
			rows = append(rows, []string{feature.Name, string(feature.State), strings.Join(feature.Needs, ", "), cmp.Or(feature.Why, "-")})
		}
		return table(rows)
	})
}
