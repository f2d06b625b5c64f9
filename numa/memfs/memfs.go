// Package memfs is a read-only file system in memory, with symbolic links. It has the
// files of a machine that is made up, or that was captured.
package memfs

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// New returns a file system with these files, links and folders, by path. It follows
// links as a disk would, and it implements [fs.ReadLinkFS]. Targets of links are relative.
// Folders of files and links need not be named. The maps must not change afterwards.
func New(files, links map[string]string, folders []string) fs.FS {
	f := memoryFS{files: files, links: links, folders: map[string][]string{".": nil}}
	for _, entries := range []map[string]string{files, links} {
		for name := range entries {
			f.addTo(path.Dir(name), path.Base(name))
		}
	}
	for _, name := range folders {
		f.addFolder(name)
	}
	for _, names := range f.folders {
		slices.Sort(names)
	}
	return f
}

// memoryFS is the content of files and the targets of links, by path, and the names in
// each folder.
type memoryFS struct {
	files, links map[string]string
	folders      map[string][]string
}

// addFolder adds a folder, unless it is known.
func (f memoryFS) addFolder(name string) {
	if _, known := f.folders[name]; !known {
		f.folders[name] = nil
		f.addTo(path.Dir(name), path.Base(name))
	}
}

func (f memoryFS) addTo(folder, name string) {
	f.addFolder(folder)
	f.folders[folder] = append(f.folders[folder], name)
}

// maxLinks is the number of links that the kernel follows in one path.
const maxLinks = 40

// find resolves the links in a path. If followLast is false, it does not follow a link
// at the end of the path.
func (f memoryFS) find(operation, name string, followLast bool) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: operation, Path: name, Err: fs.ErrInvalid}
	}
	found, rest, links := ".", name, 0
	for rest != "" && rest != "." {
		var first string
		first, rest, _ = strings.Cut(rest, "/")
		next := path.Join(found, first)
		target, isLink := f.links[next]
		_, isFile := f.files[next]
		_, isFolder := f.folders[next]
		switch {
		case isLink && (rest != "" || followLast) && links < maxLinks:
			links++
			found, rest = ".", path.Join(found, target, rest)
		case isFolder || isFile && rest == "" || isLink && !followLast:
			found = next
		default:
			return "", &fs.PathError{Op: operation, Path: name, Err: fs.ErrNotExist}
		}
	}
	return found, nil
}

// Open implements [fs.FS].
func (f memoryFS) Open(name string) (fs.File, error) {
	at, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if names, isFolder := f.folders[at]; isFolder {
		return &openFolder{entry: f.entry(path.Dir(at), path.Base(at)), fs: f, path: at, left: names}, nil
	}
	return openFile{f.entry(path.Dir(at), path.Base(at)), strings.NewReader(f.files[at])}, nil
}

// ReadFile implements [fs.ReadFileFS].
func (f memoryFS) ReadFile(name string) ([]byte, error) {
	at, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	text, isFile := f.files[at]
	if !isFile {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return []byte(text), nil
}

// ReadLink implements [fs.ReadLinkFS].
func (f memoryFS) ReadLink(name string) (string, error) {
	at, err := f.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	target, isLink := f.links[at]
	if !isLink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return target, nil
}

// Lstat implements [fs.ReadLinkFS].
func (f memoryFS) Lstat(name string) (fs.FileInfo, error) {
	at, err := f.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return f.entry(path.Dir(at), path.Base(at)), nil
}

func (f memoryFS) entry(folder, name string) entry {
	at := path.Join(folder, name)
	if target, isLink := f.links[at]; isLink {
		return entry{name, int64(len(target)), fs.ModeSymlink | 0o777}
	}
	if _, isFolder := f.folders[at]; isFolder {
		return entry{name, 0, fs.ModeDir | 0o755}
	}
	return entry{name, int64(len(f.files[at])), 0o644}
}

// entry describes a file, link or folder.
type entry struct {
	name string
	size int64
	mode fs.FileMode
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return e.size }
func (e entry) Mode() fs.FileMode          { return e.mode }
func (e entry) Type() fs.FileMode          { return e.mode.Type() }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) IsDir() bool                { return e.mode.IsDir() }
func (e entry) Sys() any                   { return nil }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Stat() (fs.FileInfo, error) { return e, nil }
func (e entry) Close() error               { return nil }

type openFile struct {
	entry
	*strings.Reader
}

// Size returns the size of the entry. Both embedded types have a method Size.
func (o openFile) Size() int64 { return o.entry.size }

type openFolder struct {
	entry
	fs   memoryFS
	path string
	left []string
}

// Read implements [fs.File].
func (o *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.path, Err: fs.ErrInvalid}
}

// ReadDir implements [fs.ReadDirFile].
func (o *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	count := len(o.left)
	if n > 0 {
		if count == 0 {
			return nil, io.EOF
		}
		count = min(count, n)
	}
	entries := make([]fs.DirEntry, count)
	for i, name := range o.left[:count] {
		entries[i] = o.fs.entry(o.path, name)
	}
	o.left = o.left[count:]
	return entries, nil
}
