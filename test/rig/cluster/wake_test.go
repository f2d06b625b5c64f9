package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMachineIsResumedAfterEachStop(t *testing.T) {
	for name, row := range map[string]struct {
		answers string // of each command: y, or n for an error
		want    string
	}{
		"all is well":              {"yyyy", "stop cont stop cont"},
		"a stop without an answer": {"nyyy", "stop cont stop cont"},
		"a cont without an answer": {"ynny", "stop cont cont cont"},
		"no monitor yet":           {"nnny", "stop cont cont cont"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var sent []string
			wake(ctx, time.Second, func(command string) error {
				answer := row.answers[len(sent)]
				sent = append(sent, command)
				if len(sent) == len(row.answers) {
					cancel()
				}
				if answer == 'n' {
					return errors.New("no answer")
				}
				return nil
			})
			if got := strings.Join(sent, " "); got != row.want {
				t.Errorf("%s: sent %q, want %q", name, got, row.want)
			}
		})
	}
}
