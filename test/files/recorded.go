package files

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Recorded is a machine that was recorded elsewhere, where a checkout of the project has it
// beside it: a tar.bz2 whose single top folder holds its sys and proc.
type Recorded struct {
	Name string // of the archive, without its ending
	path string
}

// RecordedMachines lists the recorded machines by name. It skips the test where there are
// none: they are in the folder NUMA_SNAPSHOTS, default ../shared/testdata/hwloc
// beside the repository.
func RecordedMachines(tb testing.TB) (list []Recorded) {
	tb.Helper()
	folder := os.Getenv("NUMA_SNAPSHOTS")
	if folder == "" {
		folder = filepath.Join(repository(tb), "..", "shared", "testdata", "hwloc")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.tar.bz2"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(paths) == 0 {
		tb.Skipf("no recorded machines (*.tar.bz2) in %s; NUMA_SNAPSHOTS names their folder", folder)
	}
	for _, path := range paths {
		list = append(list, Recorded{Name: strings.TrimSuffix(filepath.Base(path), ".tar.bz2"), path: path})
	}
	return list
}

// repository is the folder with this module's go.mod: tests run in the folder of
// their package, and a binary built with -trimpath does not know its source.
func repository(tb testing.TB) string {
	tb.Helper()
	folder, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if filepath.Dir(folder) == folder {
			tb.Fatal("no go.mod above the working directory: NUMA_SNAPSHOTS names the folder of recorded machines")
		}
		folder = filepath.Dir(folder)
	}
}

// memory is where a machine is unpacked first: it is thousands of files of a few
// bytes, ten times faster there than on a disk.
const memory = "/dev/shm"

// Unpack writes the machine below a temporary folder and returns the folder
// that holds its sys and proc.
func (r Recorded) Unpack(tb testing.TB) (folder string) {
	tb.Helper()
	if folder, err := os.MkdirTemp(memory, "machine-"); err == nil {
		tb.Cleanup(func() { _ = os.RemoveAll(folder) })
		if r.unpack(folder) == nil {
			return folder
		}
		_ = os.RemoveAll(folder) // too small, as in many containers
	}
	folder = tb.TempDir()
	if err := r.unpack(folder); err != nil {
		tb.Fatalf("unpack %s: %v", r.path, err)
	}
	return folder
}

func (r Recorded) unpack(folder string) error {
	file, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(bzip2.NewReader(file)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(path.Clean(header.Name), "/")
		if name == "" {
			continue // the top folder itself
		}
		if err := write(root, name, header, archive); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

// write has modes of its own: recorded files may be unreadable.
func write(root *os.Root, name string, header *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return root.WriteFile(name, text, 0o644)
	}
	return nil
}
