package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// golden files of the driver: the second one has all there is.
const (
	oldCheckpoint = "../../driver/testdata/checkpoint-v1.json"
	newCheckpoint = "../../driver/testdata/checkpoint-v3.json"
)

func TestCheckpointVerify(t *testing.T) {
	got, err := printed(t, "checkpoint", "verify", newCheckpoint)
	if want := newCheckpoint + ": version 3, claims 2, boot boot-1\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	good := files.Read(t, newCheckpoint)
	for name, row := range map[string]struct {
		content, want string
		damaged       bool
	}{
		"missing": {"", "no such file", false},
		"torn":    {good[:100], "damaged checkpoint", true},
		"changed": {strings.Replace(good, "4-5", "4-7", 1), "checksum", true},
	} {
		kubelet := t.TempDir()
		path := filepath.Join(kubelet, "plugins", driver.Name, driver.CheckpointName)
		if row.content != "" {
			files.Write(t, path, row.content)
		}
		for _, verb := range []string{"verify", "dump"} {
			got, err := printed(t, "checkpoint", verb, "--kubelet-root="+kubelet)
			if err == nil || got != "" || isUsage(err) || errors.Is(err, driver.ErrDamaged) != row.damaged ||
				!strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of a file that is %s: %q, %v, want %q and the path", verb, name, got, err, row.want)
			}
		}
	}
}

func TestCheckpointDump(t *testing.T) {
	for path, want := range map[string]int{oldCheckpoint: 1, newCheckpoint: 3} {
		got, err := printed(t, "checkpoint", "dump", path)
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
		expectUsage(t, "", want, strings.Fields("checkpoint "+args)...)
	}
}
