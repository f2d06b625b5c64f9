package capture

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// roundTrip is the machine of the archive of a root.
func roundTrip(t *testing.T, root fs.FS) (archive []byte, machine numa.Machine, err error) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, root); err != nil {
		t.Fatal(err)
	}
	captured, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	machine, err = numa.Read(captured)
	return b.Bytes(), machine, err
}

// check compares the machine under root with that of its archive.
func check(t *testing.T, root fs.FS) {
	t.Helper()
	want, err := numa.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := roundTrip(t, root)
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b cpuset.Set) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("%v; machine (-root +archive):\n%s", err, diff)
	}
}

func TestArchiveHasAllThatIsRead(t *testing.T) {
	for _, preset := range fake.Presets() {
		t.Run(preset.Name, func(t *testing.T) { check(t, preset.Machine.FS()) })
	}
	t.Run("recorded", func(t *testing.T) {
		for _, recorded := range files.RecordedMachines(t) {
			t.Run(recorded.Name, func(t *testing.T) { check(t, os.DirFS(recorded.Unpack(t))) })
		}
	})
}

// Files that numa does not read are not in the archive, and neither are other folders.
func TestArchiveHasNothingElse(t *testing.T) {
	machine := sample.Preset(t, "rig")
	dir := t.TempDir()
	if err := machine.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"proc/cmdline", "proc/1/environ", "etc/shadow", "sys/devices/system/cpu/cpu0/secret"} {
		files.Write(t, filepath.Join(dir, name), "secret")
	}
	archive, _, err := roundTrip(t, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, header := range files.Unpack(t, archive) {
		if strings.Contains(header.Name, "secret") || !belongs(strings.TrimSuffix(header.Name, "/")) || strings.HasPrefix(header.Name, "proc/1") || header.Name == "proc/cmdline" {
			t.Errorf("%s is in the archive", header.Name)
		}
		if header.Typeflag == tar.TypeSymlink {
			links++
		}
	}
	if links == 0 {
		t.Error("the archive has no links")
	}
	if size := len(archive); size > 64<<10 {
		t.Errorf("the archive has %d bytes", size)
	}
}

// What is behind a link that leads elsewhere is no file of the machine.
func TestLinksThatLeadElsewhereAreNotFollowed(t *testing.T) {
	links := map[string]string{"sys/devices/system/cpu/online": "../../../../etc/online", "sys/devices/system/node": "../../../etc"}
	root := memfs.New(map[string]string{"etc/online": "0-1\n", "sys/devices/system/cpu/cpu0/online": "1\n"}, links, nil)
	archive, machine, err := roundTrip(t, root)
	if err != nil || machine.Online != cpuset.New(0) {
		t.Errorf("%v; CPUs %s", err, machine.Online)
	}
	for _, header := range files.Unpack(t, archive) {
		if strings.HasPrefix(header.Name, "etc") || header.Typeflag == tar.TypeReg && header.Name != "sys/devices/system/cpu/cpu0/online" {
			t.Errorf("%s is in the archive", header.Name)
		}
	}
}

// What makes no sense is what a diagnosis needs. What could not be read is an error.
func TestMachineThatMakesNoSense(t *testing.T) {
	root := memfs.New(map[string]string{"sys/devices/system/cpu/online": "0-x\n"}, nil, nil)
	if _, _, err := roundTrip(t, root); err == nil || !strings.HasPrefix(err.Error(), `read sys/devices/system/cpu/online: cpulist "0-x"`) {
		t.Errorf("error %v", err)
	}
	if err := Write(io.Discard, unreadable{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want that it is not permitted", err)
	}
}

// unreadable is a file system in which nothing may be read.
type unreadable struct{}

func (unreadable) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestSameFilesGiveTheSameArchive(t *testing.T) {
	var archives [][]byte
	for range 2 {
		archive, _, err := roundTrip(t, sample.Preset(t, "rig").FS())
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same machine differ")
	}
}

func TestHostileArchivesAreRefused(t *testing.T) {
	regular := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	for what, row := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"path above":  {[]tar.Header{regular("sys/../../x")}, `unpack: "sys/../../x": want a path below sys or proc`},
		"elsewhere":   {[]tar.Header{regular("etc/passwd")}, `unpack: "etc/passwd": want a path below sys or proc`},
		"root":        {[]tar.Header{regular("/sys/x")}, `unpack: "/sys/x": want a path below sys or proc`},
		"twice":       {[]tar.Header{regular("sys/x"), {Name: "sys/x/", Typeflag: tar.TypeDir}}, `unpack: "sys/x/" occurs twice`},
		"device":      {[]tar.Header{{Name: "sys/x", Typeflag: tar.TypeChar}}, `unpack: "sys/x": want a file, a folder or a symbolic link`},
		"hard link":   {[]tar.Header{{Name: "sys/x", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}}, `unpack: "sys/x": want a file, a folder or a symbolic link`},
		"not at all":  {nil, ""},
		"link abroad": {[]tar.Header{{Name: "sys/x", Linkname: "../../etc/passwd", Typeflag: tar.TypeSymlink}}, ""},
	} {
		var b bytes.Buffer
		compressed := gzip.NewWriter(&b)
		archive := tar.NewWriter(compressed)
		for i := range row.headers {
			if err := archive.WriteHeader(&row.headers[i]); err != nil {
				t.Fatal(err)
			}
		}
		archive.Close()
		compressed.Close()
		root, err := Read(&b)
		if (err == nil) != (row.want == "") || err != nil && err.Error() != row.want {
			t.Errorf("%s: error %v, want %q", what, err, row.want)
		}
		if root != nil {
			if text, err := fs.ReadFile(root, "sys/x"); err == nil {
				t.Errorf("%s: sys/x is %q", what, text)
			}
		}
	}
}

// The size in a header is not trusted.
func TestSizesAreBounded(t *testing.T) {
	u := unpacked{map[string]string{}, map[string]string{}, map[string]bool{}, 5}
	err := u.add(&tar.Header{Name: "sys/a", Typeflag: tar.TypeReg, Size: 1}, strings.NewReader("123"))
	if err == nil {
		err = u.add(&tar.Header{Name: "sys/b", Typeflag: tar.TypeReg, Size: 1}, strings.NewReader("456"))
	}
	if err == nil || err.Error() != "the files have more than 64 MiB" {
		t.Errorf("error %v", err)
	}
	r := newRecorder(memfs.New(map[string]string{"sys/a": "123456"}, nil, nil))
	r.room = entryBytes + 5
	if _, err := r.Open("sys/a"); err == nil || r.full == nil || err.Error() != "the files of the machine have more than 64 MiB" {
		t.Errorf("error %v", err)
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, sample.Preset(f, "rig").FS()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(slices.Concat(b.Bytes()[:b.Len()/2], []byte("x")))
	f.Fuzz(func(_ *testing.T, archive []byte) {
		if root, err := Read(bytes.NewReader(archive)); err == nil {
			_, _ = numa.Read(root)
		}
	})
}
