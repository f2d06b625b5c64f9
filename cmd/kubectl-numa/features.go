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

func featuresCommand(c cli, command *cobra.Command) runner {
	f := features{c.reads(answerFormats())}
	f.addDiagnosisTo(command)
	return withContext(f.run)
}

// featureList is the answer of features.
type featureList struct {
	Kubernetes string `json:"kubernetes"` // version of the API server
	// SchedulerVisible says whether the gates of the scheduler are known. If not, they are
	// assumed to be those of the API server.
	SchedulerVisible bool                `json:"schedulerVisible"`
	Features         []diagnosis.Feature `json:"features"`
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
	answer := featureList{facts.Version, facts.SchedulerVisible(), diagnosis.Features(facts)}
	return f.print(document{what: "features", kind: kindFeatures, value: answer, text: func(s style) string {
		rows := [][]string{{"FEATURE", "STATE", "NEEDS", "DETECTED", "MEANING"}}
		for _, feature := range answer.Features {
			rows = append(rows, []string{feature.Name, string(feature.State), strings.Join(feature.Needs, ", "), cmp.Or(feature.Why, "-"), feature.What})
		}
		text := s.table(rows, 1)
		if !answer.SchedulerVisible {
			text += "The feature gates of kube-scheduler are not visible. They are assumed to be those of kube-apiserver.\n"
		}
		return text
	}})
}
