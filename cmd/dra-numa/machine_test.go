package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// The archive is the machine that the daemon reads.
func TestMachineIsWhatTheDaemonReads(t *testing.T) {
	dir := sample.Folder(t, "rig")
	want, err := numa.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := run(t.Context(), []string{"machine", "--machine-root=" + dir}, noEnv, &archive); err != nil {
		t.Fatal(err)
	}
	root, err := capture.Read(&archive)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := numa.Read(root); err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%v; the machine of the archive is\n%+v\nwant\n%+v", err, got, want)
	}
}

func TestMachineWithNonsense(t *testing.T) {
	var help bytes.Buffer
	if err := run(t.Context(), []string{"machine", "--help"}, noEnv, &help); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(help.String(), "Usage: dra-numa machine") {
		t.Errorf("error %v, help %q", err, help.String())
	}
	if err := run(t.Context(), []string{"machine", "now"}, noEnv, &help); !errors.As(err, new(*cli.UsageError)) {
		t.Errorf("error %v, want that arguments are refused", err)
	}
}
