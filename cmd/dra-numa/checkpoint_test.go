package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// goldenCheckpoint is the driver's golden file: it has all there is.
const goldenCheckpoint = "../../driver/ledger/testdata/checkpoint.json"

func TestCheckpointVerify(t *testing.T) {
	got, err := printed(t, "checkpoint", "verify", goldenCheckpoint)
	if want := goldenCheckpoint + ": version 1, claims 6, boot boot-1\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	good := files.Read(t, goldenCheckpoint)
	for name, row := range map[string]struct {
		content, want string
		wraps         error
	}{
		"missing":          {"", "no such file", fs.ErrNotExist},
		"torn":             {good[:100], "damaged checkpoint", ledger.ErrDamaged},
		"changed":          {strings.Replace(good, "4-5", "4-7", 1), "checksum", ledger.ErrDamaged},
		"of another build": {strings.Replace(good, `"version":1`, `"version":2`, 1), "written by another build: ", ledger.ErrOtherBuild},
	} {
		kubelet := t.TempDir()
		path := filepath.Join(kubelet, "plugins", driver.Name, ledger.CheckpointName)
		if row.content != "" {
			files.Write(t, path, row.content)
		}
		for _, verb := range []string{"verify", "dump"} {
			got, err := printed(t, "checkpoint", verb, "--kubelet-root="+kubelet)
			if err == nil || got != "" || isUsage(err) || !errors.Is(err, row.wraps) ||
				!strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of a file that is %s: %q, %v, want %q and the path", verb, name, got, err, row.want)
			}
		}
	}
}

func TestCheckpointDump(t *testing.T) {
	got, err := printed(t, "checkpoint", "dump", goldenCheckpoint)
	var dump struct {
		Version int
		BootID  string
		Grants  []ledger.Grant
	}
	if err != nil || json.Unmarshal([]byte(got), &dump) != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if dump.Version != 1 || dump.BootID != "boot-1" || len(dump.Grants) != 6 || dump.Grants[0].Shares[0].CPUs().String() != "4-5" {
		t.Errorf("dump %s", got)
	}
}

func TestFirstValuesCanBeVerifiedAndDumped(t *testing.T) {
	const golden = "../../driver/tuning/testdata/first.json"
	got, err := printed(t, "checkpoint", "verify", golden)
	if want := golden + ": interrupts true, dies 2, defaults 1, boot boot-1\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	var first tuning.First
	got, err = printed(t, "checkpoint", "dump", golden)
	if err != nil || json.Unmarshal([]byte(got), &first) != nil || len(first.Uncore) != 2 {
		t.Errorf("dump %s, %v", got, err)
	}
	torn := filepath.Join(t.TempDir(), tuning.FirstName)
	files.Write(t, torn, "{")
	if _, err := printed(t, "checkpoint", "verify", torn); err == nil || !strings.HasPrefix(err.Error(), torn+": damaged first values: ") {
		t.Errorf("error %v", err)
	}
}

func TestCheckpointUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                `unknown command "", allowed are verify, dump`,
		"mend":                            `unknown command "mend", allowed are verify, dump`,
		"verify a b":                      "want --kubelet-root or one file",
		"verify --kubelet-root=/x FILE":   "want --kubelet-root or one file",
		"dump --no-such-flag":             "no-such-flag",
		"verify --node-name=of-no-matter": "node-name",
	} {
		expectUsage(t, "", want, strings.Fields("checkpoint "+args)...)
	}
}
