package fake

import (
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
)

// FS returns a file system with the machine's files and links, without writing them to
// disk. It follows links as a disk would, and it implements [fs.ReadLinkFS]. It is
// empty if [Machine.Validate] returns an error.
func (m Machine) FS() fs.FS {
	t, _ := m.tree()
	return memfs.New(t.files, t.links, nil)
}

// Validate returns an error that says what is impossible about the declaration. It is
// nil for a machine that can be written.
func (m Machine) Validate() error {
	_, err := m.tree()
	return err
}

// Write writes the machine's files and links into an existing folder that has no sys and
// proc yet. It refuses an impossible declaration, and it refuses to overwrite a file.
func (m Machine) Write(dir string) error {
	t, err := m.tree()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for folder, names := range t.folders() {
		if err := t.writeFolder(root, folder, names); err != nil {
			return fmt.Errorf("write fake machine: %w", err)
		}
	}
	return nil
}

// tree holds the files and links of a machine, by path.
type tree struct {
	files map[string]string
	links map[string]string
}

func (m Machine) tree() (tree, error) {
	l := newLayout(m)
	if err := l.checkCounts(); err != nil {
		return tree{}, err
	}
	if err := l.checkLists(); err != nil {
		return tree{}, err
	}
	l.number()
	functions, err := l.functions()
	if err != nil {
		return tree{}, err
	}
	for _, check := range []func() error{l.checkCPUs, l.checkZones, l.checkMemory, l.checkDistances, l.checkResctrl} {
		if err := check(); err != nil {
			return tree{}, err
		}
	}
	t := tree{map[string]string{}, map[string]string{}}
	t.line("proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000000")
	t.addCPUs(l)
	t.addMemory(l)
	t.addZones(l)
	t.addDAX(l)
	t.addPCI(l, functions)
	t.addResctrl(l)
	return t, nil
}

// line adds a file and the newline that ends it.
func (t tree) line(name, format string, args ...any) {
	t.files[name] = fmt.Sprintf(format, args...) + "\n"
}

// link adds a link to another path of the tree.
func (t tree) link(name, target string) {
	up, at := "", path.Dir(name)
	for at != "." && !within(target, at) {
		up, at = up+"../", path.Dir(at)
	}
	if at != "." {
		target = target[len(at)+1:]
	}
	t.links[name] = up + target
}

// within reports whether a path is below a folder.
func within(name, folder string) bool {
	return len(name) > len(folder) && name[len(folder)] == '/' && name[:len(folder)] == folder
}

// folders returns the names in each folder.
func (t tree) folders() map[string][]string {
	folders := map[string][]string{}
	for _, entries := range []map[string]string{t.files, t.links} {
		for name := range entries {
			folders[path.Dir(name)] = append(folders[path.Dir(name)], path.Base(name))
		}
	}
	return folders
}

func (t tree) writeFolder(root *os.Root, folder string, names []string) error {
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	at, err := root.OpenRoot(folder) // opening a path of one name is much faster than opening one of eight
	if err != nil {
		return err
	}
	defer at.Close()
	for _, name := range names {
		if target, isLink := t.links[path.Join(folder, name)]; isLink {
			err = at.Symlink(target, name)
		} else {
			err = writeNew(at, name, t.files[path.Join(folder, name)])
		}
		if err != nil {
			return fmt.Errorf("in %s: %w", folder, err)
		}
	}
	return nil
}

func writeNew(root *os.Root, name, text string) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
