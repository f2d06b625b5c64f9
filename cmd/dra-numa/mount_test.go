package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// A mount of resctrl stays as it is. That it is mounted where there is none is a spec of
// make e2e-cache: it needs a kernel with resctrl.
func TestResctrlIsNotMountedTwice(t *testing.T) {
	proc := t.TempDir()
	files.Write(t, filepath.Join(proc, "1/ns/mnt"), "")
	files.Write(t, filepath.Join(proc, "1/mounts"), "sysfs /sys sysfs rw 0 0\nresctrl /sys/fs/resctrl resctrl rw,relatime,mba_MBps 0 0\n")
	var out strings.Builder
	err := runMountResctrl(t.Context(), cli.Call{Args: []string{"--host-proc=" + proc, "--options=cdp"}, Stdout: &out})
	if want := "resctrl is mounted already, with the options rw,relatime,mba_MBps\n"; err != nil || out.String() != want {
		t.Errorf("%q, error %v, want %q", out.String(), err, want)
	}
}

func TestMountResctrlSaysWhatIsWrong(t *testing.T) {
	proc := t.TempDir()
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"no process 1":    {[]string{"--host-proc=" + proc}, "open " + proc + "/1/ns/mnt: no such file or directory"},
		"an argument":     {[]string{"resctrl"}, `"resctrl"`},
		"an unknown flag": {[]string{"--option=cdp"}, "-option"},
	} {
		err := runMountResctrl(t.Context(), cli.Call{Args: row.args, Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}
