package main

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/version"
)

// versions is the command version with its flags.
type versions struct {
	reading
	clientOnly bool
}

func versionCommand(c cli, command *cobra.Command) runner {
	v := versions{reading: c.reads(answerFormats())}
	command.Flags().BoolVar(&v.clientOnly, "client", false, "show only the version of this program, without asking a cluster")
	v.addDiagnosisTo(command)
	return withContext(v.run)
}

// run prints the version of this program even if the cluster cannot be read.
func (v *versions) run(ctx context.Context) error {
	facts := &diagnosis.Facts{Objects: &snapshot.Snapshot{}}
	var unreadable error
	if !v.clientOnly {
		var read *diagnosis.Facts
		if read, unreadable = v.from.Versions(ctx); unreadable == nil {
			facts = read
		}
	}
	answer := diagnosis.VersionsOf(facts, version.String())
	for _, unread := range answer.Unread {
		v.note("the answer lacks the %s of %s: %s", unread.Setting, unread.Component, message.OneLine(unread.Why))
	}
	if unreadable == nil && !v.clientOnly && len(facts.Installation.DaemonSets) == 0 && len(answer.Unread) == 0 {
		v.note("found no DaemonSet of the driver in %s", &v.from)
	}
	if err := v.print(document{what: "versions", kind: kindVersions, value: answer, text: func(s style) string { return versionsText(s, answer) }}); err != nil {
		return err
	}
	return unreadable
}

// versionsText returns the answer for people.
func versionsText(s style, v diagnosis.Versions) string {
	rows := [][]string{{"COMPONENT", "VERSION", "IMAGE", "NODES", "NAMES"}, {diagnosis.Client, v.Client, "-", "-", "-"}}
	if v.Kubernetes != "" {
		rows = append(rows, []string{"kube-apiserver", v.Kubernetes, "-", "-", "-"})
	}
	if v.Chart != "" {
		rows = append(rows, []string{"chart in " + v.Namespace, v.Chart, "-", "-", "-"})
	}
	for _, c := range v.Components {
		nodes := "-"
		if len(c.Nodes) > 0 {
			nodes = strconv.Itoa(len(c.Nodes))
		}
		rows = append(rows, []string{c.Name, cmp.Or(c.Version, "-"), cmp.Or(c.Image, "-"), nodes, cmp.Or(strings.Join(c.Nodes, ","), "-")})
	}
	text := s.table(rows, 1)
	for _, skew := range v.Skew {
		text += "skew: " + message.OneLine(skew.Sentence) + "\n"
	}
	return text
}
