package kernelfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

func TestFilesAreThoseOfDirFS(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{"a": "", "b/c": "text\n", "b/long": strings.Repeat("0123456789abcdef", 1000)}
	for name, text := range want {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b/c", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root := Dir(dir)
	if err := fstest.TestFS(root, "a", "b/c", "b/long", "link"); err != nil {
		t.Error(err)
	}
	for name, text := range want {
		if got, err := fs.ReadFile(root, name); string(got) != text || err != nil {
			t.Errorf("%s has %d bytes, %v, want %d", name, len(got), err, len(text))
		}
	}
	for _, name := range []string{"none", "../a", "b", "/a"} {
		_, want := os.DirFS(dir).Open(name)
		if want == nil { // a folder
			want = &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
		}
		if _, err := fs.ReadFile(root, name); err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if target, err := fs.ReadLink(root, "link"); target != "b/c" || err != nil {
		t.Errorf("link to %q, %v", target, err)
	}
}

// A file that the runtime waits for can have a deadline.
func TestFilesOfTheKernelAreNotWaitedFor(t *testing.T) {
	const dir, name = "/sys/devices/system/cpu", "online"
	waits := func(root fs.FS) bool {
		file, err := root.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		err = file.(*os.File).SetReadDeadline(time.Now().Add(time.Minute))
		if err != nil && !errors.Is(err, os.ErrNoDeadline) {
			t.Fatal(err)
		}
		return err == nil
	}
	if waits(Dir(dir)) {
		t.Error("the runtime waits for events of the file")
	}
	if !waits(os.DirFS(dir)) {
		t.Error("os.DirFS does not wait either: this package is no longer needed")
	}
}
