package numa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// maxFileBytes limits how much is read from one file. The longest file is
// proc/zoneinfo: 3 MB with 1024 CPUs and 16 nodes.
const maxFileBytes = 64 << 20

// tree is the root of a machine's files. Its readers answer "absent" for a missing file
// and for an empty one.
type tree struct {
	root     fs.FS
	buffer   *[]byte // reused for every file
	lenient  bool    // a file that cannot be read counts as absent: the speed of a PCI function without a link is EINVAL
	fleeting bool    // folders may be removed meanwhile: reading a file of a removed one is ENODEV (fs/kernfs/file.c)
}

func newTree(root fs.FS) tree {
	return tree{root: root, buffer: new(make([]byte, 8<<10))}
}

// optional returns a tree for facts that no CPU and no memory depends on. For this
// tree, a file that cannot be read is absent.
func (t tree) optional() tree {
	t.lenient = true
	return t
}

// isAbsent reports whether an error from opening or reading a file means that the
// kernel has nothing to tell.
func (t tree) isAbsent(err error) bool {
	return t.lenient || errors.Is(err, fs.ErrNotExist) || t.fleeting && errors.Is(err, syscall.ENODEV)
}

// text returns a file's content without the white space around it. The content ends at
// the first NUL, because some kernels pad masks and lists. Found is false if there is
// no such file.
func (t tree) text(name string) (text string, found bool, err error) {
	data, err := t.bytes(name)
	if err != nil {
		if t.isAbsent(err) {
			err = nil
		}
		return "", false, err
	}
	if end := bytes.IndexByte(data, 0); end >= 0 {
		data = data[:end]
	}
	return string(bytes.TrimSpace(data)), true, nil
}

// bytes returns a file's content. It is valid until the next call.
func (t tree) bytes(name string) ([]byte, error) { return t.read(name, maxFileBytes) }

// limited returns the content of a file that no kernel wrote. It is nil if there is no
// such file, and valid until the next call.
func (t tree) limited(name string, limit int) ([]byte, error) {
	data, err := t.read(name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (t tree) read(name string, limit int) ([]byte, error) {
	file, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := (*t.buffer)[:0]
	for {
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if len(data) > limit {
			return nil, fmt.Errorf("read %s: longer than %d bytes", name, limit)
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, cap(data))
			*t.buffer = data
		}
	}
}

// parseFile parses a file; found is false if it is absent or empty.
func parseFile[T any](t tree, name string, parse func(string) (T, error)) (value T, found bool, err error) {
	text, _, err := t.text(name)
	if err != nil || text == "" {
		return value, false, err
	}
	if value, err = parse(text); err != nil {
		return value, false, fmt.Errorf("read %s: %w", name, err)
	}
	return value, true, nil
}

// pointer parses a file; the result is nil if the file is absent or empty.
func pointer[T any](t tree, name string, parse func(string) (T, error)) (*T, error) {
	value, found, err := parseFile(t, name, parse)
	if err != nil || !found {
		return nil, err
	}
	return &value, nil
}

// set reads the first of the files that exists, as a list if its name says so, else as
// a mask. Old kernels have only masks. The set is empty if all files are absent.
func (t tree) set(names ...string) (cpuset.Set, error) {
	for _, name := range names {
		parse := cpuset.ParseMask
		if strings.Contains(path.Base(name), "list") {
			parse = cpuset.Parse
		}
		set, found, err := parseFile(t, name, parse)
		if found || err != nil {
			return set, err
		}
	}
	return cpuset.Set{}, nil
}

// entries returns the names in a folder; none if it is absent.
func (t tree) entries(folder string) ([]string, error) {
	entries, err := fs.ReadDir(t.root, folder)
	if err != nil && !t.isAbsent(err) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// numbered returns the N of every <prefix><N> in a folder. It skips other names with
// the same prefix, such as cpufreq. A number out of bounds is an error.
func (t tree) numbered(folder, prefix string) (cpuset.Set, error) {
	names, err := t.entries(folder)
	if err != nil {
		return cpuset.Set{}, err
	}
	var ids []int
	for _, name := range names {
		if !isNumbered(name, prefix) {
			continue
		}
		id, err := strconv.Atoi(name[len(prefix):])
		if err != nil || id >= cpuset.MaxCPUs {
			return cpuset.Set{}, fmt.Errorf("read %s/%.80s: its number is above %d", folder, name, cpuset.MaxCPUs-1)
		}
		ids = append(ids, id)
	}
	return cpuset.New(ids...), nil
}

// isNumbered reports whether the name is <prefix><N>.
func isNumbered(name, prefix string) bool {
	number, ok := strings.CutPrefix(name, prefix)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// link returns the target of a symbolic link as a path of the tree; ok is false if
// there is no such link.
func (t tree) link(name string) (target string, ok bool) {
	target, err := fs.ReadLink(t.root, name)
	if err != nil {
		return "", false
	}
	target = path.Join(path.Dir(name), target)
	return target, fs.ValidPath(target)
}

// parseNumber reads a decimal number small enough (< 2⁵³) to be counted in KiB without
// overflow.
func parseNumber(text string) (uint64, error) {
	return parseUint(text, 10, 53, "a decimal number from 0 to 2^53-1")
}

// parseUint reads a number. An error says what it should be.
func parseUint(text string, base, bits int, want string) (uint64, error) {
	number, err := strconv.ParseUint(text, base, bits)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not %s", text, want)
	}
	return number, nil
}

// parseInt reads a number that the kernel prints from a C int.
func parseInt(text string) (int, error) {
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a decimal number of 32 bits", text)
	}
	return int(number), nil
}

// positive reads a number that the kernel prints as 0 if it does not know it. It is nil
// for 0, and if the file is absent.
func (t tree) positive(name string) (*uint64, error) {
	number, err := pointer(t, name, parseNumber)
	if number != nil && *number == 0 {
		number = nil
	}
	return number, err
}
