package pin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	cpusFile      = "cpuset.cpus"
	memsFile      = "cpuset.mems"
	exclusiveFile = "cpuset.cpus.exclusive"
	partitionFile = "cpuset.cpus.partition"
	rootCPUsFile  = cpusFile + ".effective" // of the root cgroup: all CPUs but those of valid partitions

	// member is the value of cpuset.cpus.partition if a cgroup is not a partition root.
	member = "member"
	// unread is the state of a cgroup that cannot be read, or whose children cannot.
	unread = "unreadable"
)

// group is the content of one cgroup's cpuset files.
type group struct {
	path      string
	exclusive cpuset.Set
	// state is member, root or isolated, or one of the latter two followed
	// by " invalid (reason)", or unread.
	state string
	fault error // why it is unread
	// most is what it can have to itself, as the cgroups above it say; nil directly below the mount.
	most *cpuset.Set
	// cpus is read for partitions and the target only, mems for the target only.
	cpus, mems cpuset.Set
}

// holds returns the CPUs that the group keeps from other cgroups. An invalid partition
// still has its owner, so it holds its CPUs too. One that is unread holds what it may hold.
func (g group) holds() cpuset.Set {
	if g.state == member {
		return cpuset.Set{}
	}
	return g.own()
}

func (g group) own() cpuset.Set {
	if g.exclusive.IsEmpty() {
		return g.cpus // another program made this partition, with cpuset.cpus alone
	}
	return g.exclusive
}

// isValid reports whether the group is a partition that the kernel honours.
func (g group) isValid() bool { return g.state != member && !strings.Contains(g.state, "invalid") }

// tree has every cgroup that matters to a plan: the target, its ancestors, and every
// cgroup with exclusive CPUs or a partition that is not inside another partition. Parents
// come before their children. A partition can only be below a cgroup with exclusive CPUs,
// below another partition, or directly below the mount. So nothing else is walked. What is
// inside a partition has CPUs of that partition only, whatever its files ask for: a tenant
// with a writable cgroup writes there.
//
// A tenant may also forbid to read its cgroup (chmod 0), or give one below it a name that
// cannot be opened. So a cgroup that cannot be read is in the tree as unread. It has no more
// than the exclusive CPUs of all cgroups above it, which are not the tenant's. Of one directly
// below the mount, nothing is known.
type tree []group

// readTree takes the snapshot. It leaves out cgroups that vanish meanwhile, but returns
// an error if the target or one of its ancestors does, or cannot be read.
func readTree(cgroups fs.FS, target string) (tree, error) {
	if err := checkController(cgroups, target); err != nil {
		return nil, err
	}
	var t tree
	if err := t.walk(cgroups, target); err != nil {
		return nil, err
	}
	return t, nil
}

// walk adds the cgroups of the host that matter. A target of "" is none.
func (t *tree) walk(cgroups fs.FS, target string) error {
	return t.walkBelow(cgroups, ".", cpuset.Set{}, target)
}

// walkBelow adds the children of dir that matter, and the cgroups below them. They can have no
// more CPUs to themselves than most, unless dir is the mount.
func (t *tree) walkBelow(cgroups fs.FS, dir string, most cpuset.Set, target string) error {
	entries, err := fs.ReadDir(cgroups, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		child := path.Join(dir, entry.Name())
		onPath := isWithin(target, child)
		g, err := readGroup(cgroups, child, child == target)
		if isGone(err) && !onPath {
			continue
		}
		if err != nil && onPath {
			return err
		}
		if err != nil {
			*t = append(*t, group{path: child, exclusive: most, state: unread, fault: err})
			continue
		}
		if dir != "." {
			g.most = &most
		}
		idle := g.exclusive.IsEmpty() && g.state == member
		if idle && !onPath {
			continue
		}
		*t = append(*t, g)
		if child == target || g.state != member && !onPath {
			continue // cgroups below get their CPUs from it
		}
		i, below := len(*t)-1, g.own()
		if dir != "." {
			below = below.Intersection(most)
		}
		switch err := t.walkBelow(cgroups, child, below, target); {
		case err == nil:
		case onPath:
			return err
		case !isGone(err):
			(*t)[i].exclusive, (*t)[i].state, (*t)[i].fault = below, unread, err
		}
	}
	return nil
}

// unread returns the first cgroup that could not be read, and how many more there are: a
// tenant can make many.
func (t tree) unread() error {
	var first error
	more := 0
	for _, g := range t {
		switch {
		case g.fault == nil:
		case first == nil:
			first = fmt.Errorf("read cgroup %q: %w", g.path, g.fault)
		default:
			more++
		}
	}
	if more > 0 {
		return fmt.Errorf("%w, and %d more cgroups", first, more)
	}
	return first
}

func readGroup(cgroups fs.FS, name string, isTarget bool) (g group, err error) {
	g.path = name
	if g.state, err = readLine(cgroups, path.Join(name, partitionFile)); err != nil {
		return g, err
	}
	// Kernels before Linux 6.7 have no such file. If the cgroup vanishes at this moment,
	// it counts as one without exclusive CPUs, which is left out.
	if g.exclusive, err = readSet(cgroups, path.Join(name, exclusiveFile)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return g, err
	}
	if g.state != member || isTarget {
		if g.cpus, err = readSet(cgroups, path.Join(name, cpusFile)); err != nil {
			return g, err
		}
	}
	if isTarget {
		g.mems, err = readSet(cgroups, path.Join(name, memsFile))
	}
	return g, err
}

// checkController returns an error if a cgroup on the path to the container has no
// cpuset files. The error names the first such cgroup and the parent that does not enable
// the controller.
func checkController(cgroups fs.FS, container string) error {
	if !fs.ValidPath(container) || container == "." {
		return fmt.Errorf("cgroup %q: want a path below the cgroup mount", container)
	}
	if _, err := fs.Stat(cgroups, "cgroup.controllers"); err != nil {
		return fmt.Errorf("cgroup v2 is not mounted here (%w): %w", err, ErrNotSupported)
	}
	parent := "."
	for _, name := range strings.Split(container, "/") {
		dir := path.Join(parent, name)
		if _, err := fs.Stat(cgroups, dir); err != nil {
			return err
		}
		_, err := fs.Stat(cgroups, path.Join(dir, cpusFile))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cgroup %s has no cpuset files: cgroup.subtree_control of %s lacks cpuset: %w",
				dir, rootName(parent), ErrNotSupported)
		}
		if err != nil {
			return err
		}
		parent = dir
	}
	return nil
}

// checkExclusive returns an error if the kernel has no cpuset.cpus.exclusive, which a
// remote partition needs. Without a partition, a container can be pinned all the same.
func checkExclusive(cgroups fs.FS, container string, want Pinning) error {
	if want.CPUs.IsEmpty() || want.Partition == PartitionNone {
		return nil
	}
	_, err := fs.Stat(cgroups, path.Join(container, exclusiveFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the kernel has no %s, so it cannot make partition %s (needs Linux 6.11 or newer): %w",
			exclusiveFile, want.Partition, ErrNotSupported)
	}
	return err
}

func rootName(dir string) string {
	if dir == "." {
		return "the root cgroup"
	}
	return dir
}

// isWithin reports whether name is dir or below it.
func isWithin(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// isGone reports whether err is what the kernel returns for a cgroup that was removed,
// or that has no cpuset controller.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// hasEnded reports whether err says only that the cgroup was removed meanwhile, and not
// that another program disabled its cpuset controller.
func hasEnded(cgroups fs.FS, cgroup string, err error) bool {
	if !isGone(err) {
		return false
	}
	_, err = fs.Stat(cgroups, cgroup)
	return isGone(err)
}

// readLine reads the first line and no further. Each container start reads hundreds of
// cgroups, and looking for the end of a file costs another system call.
func readLine(cgroups fs.FS, name string) (string, error) {
	file, err := cgroups.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // opened for reading
	var text []byte
	for buf := make([]byte, 256); !bytes.ContainsRune(text, '\n'); {
		n, err := file.Read(buf)
		text = append(text, buf[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line, nil
}

func readSet(cgroups fs.FS, name string) (cpuset.Set, error) {
	line, err := readLine(cgroups, name)
	if err != nil {
		return cpuset.Set{}, err
	}
	set, err := cpuset.Parse(line)
	if err != nil {
		return cpuset.Set{}, fmt.Errorf("read %s: %w", name, err)
	}
	return set, nil
}
