package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// golden files of the driver: the second one has all there is.
const (
	oldCheckpoint = "../../driver/testdata/checkpoint-v1.json"
	newCheckpoint = "../../driver/testdata/checkpoint-v3.json"
)

func runLines(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := run(t.Context(), append([]string{"checkpoint"}, args...), noEnv, &stdout)
	return stdout.String(), err
}

func TestCheckpointVerify(t *testing.T) {
	got, err := runLines(t, "verify", newCheckpoint)
	if want := newCheckpoint + ": version 3, claims 2, boot boot-1\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	kubelet := t.TempDir()
	path := filepath.Join(kubelet, "plugins", driver.Name, driver.CheckpointName)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(newCheckpoint)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		content []byte
		want    string
		damaged bool
	}{
		"missing": {nil, "no such file", false},
		"torn":    {good[:100], "damaged checkpoint", true},
		"changed": {bytes.Replace(good, []byte("4-5"), []byte("4-7"), 1), "checksum", true},
	} {
		if row.content != nil {
			if err := os.WriteFile(path, row.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, verb := range []string{"verify", "dump"} {
			got, err := runLines(t, verb, "--kubelet-root="+kubelet)
			var usage *cli.UsageError
			if err == nil || got != "" || errors.As(err, &usage) || errors.Is(err, driver.ErrDamaged) != row.damaged ||
				!strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of a file that is %s: %q, %v, want %q and the path", verb, name, got, err, row.want)
			}
		}
		_ = os.Remove(path)
	}
}

func TestCheckpointDump(t *testing.T) {
	for path, want := range map[string]int{oldCheckpoint: 1, newCheckpoint: 3} {
		got, err := runLines(t, "dump", path)
		var dump struct {
			Version int
			BootID  string
			Grants  []driver.Grant
		}
		if err != nil || json.Unmarshal([]byte(got), &dump) != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if dump.Version != want || dump.BootID != "boot-1" || len(dump.Grants) != 2 || dump.Grants[0].Shares[0].CPUs().String() != "4-5" {
			t.Errorf("dump %s", got)
		}
	}
}

func TestCheckpointUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                `checkpoint "": want verify or dump`,
		"mend":                            `checkpoint "mend": want verify or dump`,
		"verify a b":                      "want --kubelet-root or one file",
		"verify --kubelet-root=/x FILE":   "want --kubelet-root or one file",
		"dump --no-such-flag":             "no-such-flag",
		"verify --node-name=of-no-matter": "node-name",
	} {
		_, err := runLines(t, strings.Fields(args)...)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want usage with %q", args, err, want)
		}
	}
	for _, args := range [][]string{{"-h"}, {"verify", "--help"}} {
		got, err := runLines(t, args...)
		if !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(got, "Usage: dra-numa checkpoint verify|dump") || !strings.Contains(got, "-kubelet-root directory") {
			t.Errorf("%q: help %q, %v", args, got, err)
		}
	}
	var stdout bytes.Buffer
	if _ = run(t.Context(), []string{"--help"}, noEnv, &stdout); !strings.Contains(stdout.String(), "dra-numa checkpoint verify|dump") {
		t.Errorf("help %q does not name the subcommand", stdout.String())
	}
}
