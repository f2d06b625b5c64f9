// Package capture writes the files of a machine to an archive: those that package numa
// reads, the id of the boot, what the machine is called, and no others. It also reads such archives. An archive may come
// from a stranger, so the package limits its size, and writes nothing of it to a disk.
package capture

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
)

const (
	// maxBytes limits an archive before it is compressed. A machine with 1024 CPUs has
	// 10 MiB.
	maxBytes = 64 << 20
	// entryBytes is more than an archive needs for an entry without its content, unless its
	// name is very long.
	entryBytes = 2 << 10
)

// Write writes an archive with the files of the machine under root. It also archives
// files that [numa.Read] cannot parse, so that numa.Read returns the same error for the
// archive as for the machine. The same files always give the same archive.
func Write(w io.Writer, root fs.FS) error {
	r := newRecorder(root)
	_, failed := numa.Read(r)
	for _, name := range append(numa.PlatformFiles(), numa.BootIDFile) {
		_, _ = fs.ReadFile(r, name) // this keeps it, if there is one
	}
	if r.full != nil {
		return r.full
	}
	if failed != nil {
		if _, again := numa.Read(r.recorded()); again == nil || again.Error() != failed.Error() {
			return failed // a file could not be read, so it is not in the archive
		}
	}
	return r.write(w)
}

// entry is a file, a link or a folder of an archive.
type entry struct {
	tar.Header
	text string
}

func (r *recorder) write(w io.Writer) error {
	var entries []entry
	for name := range r.folders {
		entries = append(entries, entry{tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755}, ""})
	}
	for name, text := range r.files {
		entries = append(entries, entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}, text})
	}
	for name, target := range r.links {
		entries = append(entries, entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}, ""})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for i := range entries {
		if err := archive.WriteHeader(&entries[i].Header); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, entries[i].text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// Read returns the files of an archive, as a root for [numa.Read]. It refuses files that
// are not below sys or proc, except the report of numa-nvml.
func Read(r io.Reader) (fs.FS, error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	u := unpacked{make(map[string]string), make(map[string]string), make(map[string]bool), maxBytes}
	archive := tar.NewReader(io.LimitReader(compressed, maxBytes))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return memfs.New(u.files, u.links, slices.Collect(maps.Keys(u.folders))), nil
		}
		if err == nil {
			err = u.add(header, archive)
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
}

// unpacked is an archive in memory.
type unpacked struct {
	files   map[string]string // content by path
	links   map[string]string // target by path
	folders map[string]bool
	room    int64 // bytes that are left
}

// add adds an entry. The size in the header is not trusted: a sparse file takes no room in
// an archive.
func (u *unpacked) add(header *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(header.Name, "/")
	_, isFile := u.files[name]
	_, isLink := u.links[name]
	switch {
	case !belongs(name):
		return fmt.Errorf("%q: want a path below sys or proc", header.Name)
	case isFile || isLink || u.folders[name]:
		return fmt.Errorf("%q occurs twice", header.Name)
	case header.Typeflag == tar.TypeSymlink:
		u.links[name] = header.Linkname
	case header.Typeflag == tar.TypeDir:
		u.folders[name] = true
	case header.Typeflag == tar.TypeReg:
		text, err := io.ReadAll(io.LimitReader(content, u.room+1))
		if err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
		if u.room -= int64(len(text)); u.room < 0 {
			return fmt.Errorf("the files have more than %d MiB", maxBytes>>20)
		}
		u.files[name] = string(text)
	default:
		return fmt.Errorf("%q: want a file, a folder or a symbolic link", header.Name)
	}
	return nil
}

// belongs reports whether a file of this path can be in an archive.
func belongs(name string) bool {
	first, _, below := strings.Cut(name, "/")
	return fs.ValidPath(name) && (below && (first == "sys" || first == "proc") || name == numa.GPUReportFile)
}

// recorder is a file system that reads from another one, and keeps what was read. The
// paths that it keeps have no links, so each file is where it is on the machine.
type recorder struct {
	root    fs.FS
	files   map[string]string // content by path
	links   map[string]string // target by path
	folders map[string]bool   // that were listed, and those in them
	plain   map[string]bool   // paths that are no links
	room    int               // bytes that are left
	full    error             // set when there is no room
}

func newRecorder(root fs.FS) *recorder {
	return &recorder{root, make(map[string]string), make(map[string]string), make(map[string]bool), make(map[string]bool), maxBytes, nil}
}

// recorded returns what has been read.
func (r *recorder) recorded() fs.FS {
	return memfs.New(r.files, r.links, slices.Collect(maps.Keys(r.folders)))
}

// take takes room for an entry.
func (r *recorder) take(bytes int) error {
	if r.room -= entryBytes + bytes; r.room < 0 && r.full == nil {
		r.full = fmt.Errorf("the files of the machine have more than %d MiB", maxBytes>>20)
	}
	return r.full
}

// Open implements [fs.FS]. It reads the whole file. A file that cannot be in an archive
// does not exist.
func (r *recorder) Open(name string) (fs.File, error) {
	at := r.resolve(name)
	if !belongs(at) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if _, again := r.files[at]; !again {
		if err := r.take(len(text)); err != nil {
			return nil, err
		}
		r.files[at] = string(text)
	}
	return opened{strings.NewReader(r.files[at]), info}, nil
}

// opened is a file that has been read.
type opened struct {
	*strings.Reader
	info fs.FileInfo
}

func (o opened) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o opened) Close() error               { return nil }

// ReadDir implements [fs.ReadDirFS].
func (r *recorder) ReadDir(name string) ([]fs.DirEntry, error) {
	at := r.resolve(name)
	if !belongs(at) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	entries, err := fs.ReadDir(r.root, name)
	if err != nil {
		return nil, err
	}
	if err := r.addFolder(at); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		switch below := path.Join(at, entry.Name()); {
		case entry.IsDir():
			err = r.addFolder(below)
		case entry.Type() == fs.ModeSymlink:
			_, _, err = r.link(below)
		}
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (r *recorder) addFolder(name string) error {
	if r.folders[name] {
		return nil
	}
	r.folders[name] = true
	return r.take(0)
}

// ReadLink implements [fs.ReadLinkFS].
func (r *recorder) ReadLink(name string) (string, error) {
	_, _, full := r.link(path.Join(r.resolve(path.Dir(name)), path.Base(name)))
	if full != nil {
		return "", full
	}
	return fs.ReadLink(r.root, name)
}

// Lstat implements [fs.ReadLinkFS].
func (r *recorder) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.root, name) }

// maxLinks is the number of links that the kernel follows in one path.
const maxLinks = 40

// resolve returns the path of a file without links, and keeps the links.
func (r *recorder) resolve(name string) string {
	found, rest := ".", name
	for links := 0; rest != "" && rest != "."; {
		first, after, _ := strings.Cut(rest, "/")
		next := path.Join(found, first)
		if target, isLink, _ := r.link(next); isLink && links < maxLinks {
			links++
			found, rest = ".", path.Join(found, target, after)
			continue
		}
		found, rest = next, after
	}
	return found
}

// link returns the target of a link, and keeps it. The path has no other link.
func (r *recorder) link(name string) (target string, isLink bool, full error) {
	if target, isLink = r.links[name]; isLink || r.plain[name] {
		return target, isLink, nil
	}
	target, err := fs.ReadLink(r.root, name)
	if err != nil || path.IsAbs(target) || !belongs(name) {
		r.plain[name] = true
		return "", false, nil
	}
	r.links[name] = target
	return target, true, r.take(len(target))
}
