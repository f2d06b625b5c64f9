package kernelfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestFilesThatReadDifferently(t *testing.T) {
	dir := t.TempDir()
	root := os.DirFS(dir)
	write := func(name, text string) {
		t.Helper()
		files.Write(t, filepath.Join(dir, name), text)
	}
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var f FirstLines
	defer f.Close()
	expect := func(what string, want bool) {
		t.Helper()
		if got := f.Changed(root); got != want {
			t.Errorf("%s: changed is %t, want %t", what, got, want)
		}
		if f.Changed(root) {
			t.Errorf("%s: it changes twice", what)
		}
	}
	write("a", "1\n")
	f.Follow(root, []string{"a", "absent"})
	expect("nothing", false)
	write("a", "2\n")
	expect("another content", true)
	write("a", "2\n")
	expect("the same content", false)
	write("a", "2\nMemFree: 1\n")
	expect("another second line", false)
	write("absent", "")
	expect("a file that appears", true)
	write("b", "1")
	expect("a file that is not followed", false)
	f.Follow(root, []string{"a", "b"})
	write("absent", "1")
	expect("a file that is not followed any more", false)
	write("b", "longer than before")
	expect("a longer one", true)
	write("b", "")
	expect("an empty one", true)
	remove("b")
	f.Follow(root, []string{"b"}) // still open: as a cgroup's file, which fails then, it would be opened again
	if len(f.files) != 1 {
		t.Errorf("%d files, want 1", len(f.files))
	}
	f.Close()
	if f.Changed(root) {
		t.Error("closed files change")
	}
}
