package resctrlfs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
)

// node is a folder or a file.
type node struct {
	name string

	// list returns what is in a folder; it is nil for a file. group is the one that a
	// folder or file belongs to; it is nil in info.
	list  func() []node
	group *group
	kind  kind

	read  func() string
	write func(text string) error // nil if the file cannot be written
}

// kind is what can be made and removed in a folder.
type kind int

const (
	fixed     kind = iota // nothing can be made in it, and it cannot be removed
	isGroup               // the folder of a group
	monGroups             // a folder mon_groups
)

func (n node) isFolder() bool { return n.list != nil }

// find returns the node with a path, or the error of open(2).
func (f *FS) find(name string) (node, error) {
	at := f.groupFolder(f.root)
	if !fs.ValidPath(name) {
		return node{}, syscall.EINVAL
	}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !at.isFolder() {
			return node{}, syscall.ENOTDIR
		}
		next, found := child(at, part)
		if !found {
			return node{}, syscall.ENOENT
		}
		at = next
	}
	return at, nil
}

func child(of node, name string) (node, bool) {
	for _, n := range of.list() {
		if n.name == name {
			if !n.isFolder() {
				n.group = of.group
			}
			return n, true
		}
	}
	return node{}, false
}

// findNew returns the folder in which name is to be made, or the error of mkdir(2).
func (f *FS) findNew(name string) (parent node, err error) {
	if parent, err = f.find(path.Dir(name)); err != nil {
		return node{}, err
	}
	_, err = f.find(name)
	switch {
	case !parent.isFolder():
		return node{}, syscall.ENOTDIR
	case err == nil:
		return node{}, syscall.EEXIST
	}
	return parent, nil
}

// Open implements [fs.FS]. An open file has the text of the moment when it was opened.
func (f *FS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	files, folders := map[string]string{}, []string{name}
	if n.isFolder() {
		for _, entry := range n.list() {
			if entry.isFolder() {
				folders = append(folders, path.Join(name, entry.name))
			} else {
				files[path.Join(name, entry.name)] = entry.read()
			}
		}
	} else {
		files[name], folders = n.read(), nil
	}
	return memfs.New(files, nil, folders).Open(name)
}

// ReadFile implements [fs.ReadFileFS].
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name)
	if err == nil && n.isFolder() {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return []byte(n.read()), nil
}

// ReadDir implements [fs.ReadDirFS].
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	folder, isFolder := file.(fs.ReadDirFile)
	if !isFolder {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	return folder.ReadDir(-1)
}
