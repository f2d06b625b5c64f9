// Package resctrl gives groups of CPUs ways of caches and bandwidth, with the files of a
// mounted resctrl filesystem; Documentation/filesystems/resctrl.rst. Its caller says
// what the groups should have, and it decides in which order to write that: no step lets two groups
// fill the same ways if they should not share any. It reads back what the kernel granted.
// It decides nothing about claims.
//
// It owns the groups whose name is dra-numa.<N> or dra-numa.<word>, and the masks and
// bandwidths of the default group. It changes no other group, and takes no CPU from one.
package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// prefix is that of the names of our groups.
const prefix = "dra-numa."

// Name returns the name of a group of ours. n is not negative.
func Name(n int) string { return prefix + strconv.Itoa(n) }

// NameOf returns the name of a group of ours that the operator has named. The word has small
// letters, digits and dashes, and begins with a letter.
func NameOf(word string) string { return prefix + word }

var givenName = regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "[a-z][a-z0-9-]*$")

// IsNamed reports whether a group has a name that NameOf returns.
func IsNamed(group string) bool { return givenName.MatchString(group) }

// IsOurs reports whether a group has a name that Name or NameOf returns.
func IsOurs(group string) bool {
	number, ok := strings.CutPrefix(group, prefix)
	n, err := strconv.ParseUint(number, 10, 31)
	return ok && err == nil && number == strconv.FormatUint(n, 10) || IsNamed(group)
}

// ErrNotMounted says that the node has no resctrl filesystem.
var ErrNotMounted = errors.New("resctrl is not mounted")

// Group is what one group should have.
type Group struct {
	Name     string        // see [Name] and [NameOf]
	Schemata numa.Schemata // what is not named stays as it is; bandwidths are as the kernel rounds them
	CPUs     cpuset.Set    // exactly these; those that are offline are left out

	// Exclusive asks the kernel to refuse masks of others that overlap. It tests every
	// cache, and the ways that devices use. If the kernel refuses, the group does without.
	Exclusive bool
	// Joined says that containers join the group, so that it may have tasks that the
	// reader does not see.
	Joined bool
}

// Wanted is what groups should have. Two of them that should share no way of a cache never
// do so while they have CPUs of it.
type Wanted struct {
	Default numa.Schemata // of the default group; it may be empty
	Groups  []Group       // their names differ, and no two have the same CPU
	// Caches say which CPUs a cache has. A cache that is not listed counts as one of all
	// CPUs.
	Caches []Cache
}

// Cache is one cache of the machine.
type Cache struct {
	Level string // L2 or L3
	ID    int
	CPUs  cpuset.Set
}

// validate refuses what no order of writes can do.
func (w Wanted) validate() error {
	var all cpuset.Set
	seen := map[string]bool{}
	for _, group := range w.Groups {
		switch {
		case !IsOurs(group.Name):
			return fmt.Errorf("group %q: want a name such as %s", group.Name, Name(0))
		case seen[group.Name]:
			return fmt.Errorf("group %s occurs twice", group.Name)
		case all.Overlaps(group.CPUs):
			return fmt.Errorf("group %s: another group has cpus %s", group.Name, all.Intersection(group.CPUs))
		}
		seen[group.Name] = true
		all = all.Union(group.CPUs)
	}
	return nil
}

// names returns the names of the groups.
func (w Wanted) names() (list []string) {
	for _, group := range w.Groups {
		list = append(list, group.Name)
	}
	return list
}

// namesToRead returns the groups whose state matters, the default one if there are no
// others.
func (w Wanted) namesToRead() []string {
	if len(w.Groups) == 0 {
		return []string{""}
	}
	return w.names()
}

// Files is where resctrl is mounted. Names are relative to the mount.
type Files interface {
	fs.FS
	Mkdir(name string) error
	Rmdir(name string) error
	// Write writes text to a file that exists, with one write(2).
	Write(name, text string) error
}

// Host is a node with a resctrl filesystem. Its methods can be called again after an error
// or a crash: they do not repeat what is already done, and they heal what was left half
// done. One process on the node may call them.
type Host struct {
	files Files
	view  numa.ResctrlView
	mu    sync.Mutex    // held while groups are read or change
	info  *numa.Resctrl // of the last look at everything; nil before the first one
}

// On returns the node whose resctrl filesystem is mounted at a folder.
func On(mount string, view numa.ResctrlView) *Host {
	return New(folder{kernelfs.Dir(mount), mount}, view)
}

// New returns a node with these files.
func New(files Files, view numa.ResctrlView) *Host { return &Host{files: files, view: view} }

// Read returns the state of all groups. It returns ErrNotMounted if there is none.
func (h *Host) Read() (numa.ResctrlState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.read()
}

// read returns the state of the named groups and the default one; of all if there are no
// names. What the machine can share out changes only with a mount, so with names it is
// that of the last look at everything.
func (h *Host) read(names ...string) (numa.ResctrlState, error) {
	if h.info != nil && len(names) > 0 {
		groups, err := numa.ReadResctrlGroups(h.files, h.view, *h.info, names...)
		return numa.ResctrlState{Info: *h.info, Groups: groups}, err
	}
	state, err := numa.ReadResctrl(h.files, h.view)
	if err == nil && state == nil {
		err = ErrNotMounted
	}
	if err != nil {
		h.info = nil
		return numa.ResctrlState{}, err
	}
	h.info = &state.Info
	if len(names) > 0 {
		state.Groups = slices.DeleteFunc(state.Groups, func(g numa.ResctrlGroup) bool { return g.Name != "" && !slices.Contains(names, g.Name) })
	}
	return *state, nil
}

// folder is a mounted filesystem.
type folder struct {
	fs.FS
	path string
}

func (f folder) Mkdir(name string) error {
	return inFolderOf(filepath.Join(f.path, name), func(name string) error { return os.Mkdir(name, 0o755) })
}

func (f folder) Rmdir(name string) error {
	return inFolderOf(filepath.Join(f.path, name), syscall.Rmdir)
}

// inFolderOf changes an entry of a folder. The kernel makes the folders of resctrl without
// the right to write for anyone, so that only programs with CAP_DAC_OVERRIDE change them.
// But root owns them, and an owner may give itself the right.
func inFolderOf(name string, change func(name string) error) error {
	err := change(name)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(filepath.Dir(name), 0o755) == nil {
		err = change(name)
	}
	return err
}

func (f folder) Write(name, text string) error {
	file, err := os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
