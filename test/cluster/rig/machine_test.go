package rig

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunMachineStartsAnewUntilItFails(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	err := RunMachine(t.Context(), "sh", "-c", `echo . >>"$0"; test "$(wc -l <"$0")" -lt 3`, starts)
	if err == nil || !strings.Contains(err.Error(), "run sh: exit status 1") {
		t.Errorf("error %v, want the exit status", err)
	}
	if text, err := os.ReadFile(starts); err != nil || string(text) != ".\n.\n.\n" {
		t.Errorf("starts %q, %v, want three", text, err)
	}
}

func TestRunMachineStopsWhatRuns(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				stop()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := RunMachine(ctx, "sh", "-c", `: >"$0"; exec sleep 1000`, started); err != nil {
		t.Error(err)
	}
}
