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

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// maxFileBytes bounds what is read of one file. The longest is proc/zoneinfo, 3 MB with 1024 CPUs and 16 nodes.
const maxFileBytes = 64 << 20

// tree is the root of a machine's files. Its readers answer "absent" for a missing file and for an empty one.
type tree struct {
	root    fs.FS
	buffer  *[]byte // reused from file to file
	lenient bool    // a file that cannot be read is absent: a PCI function without a link answers EINVAL for its speed
}

func newTree(root fs.FS) tree {
	return tree{root: root, buffer: new(make([]byte, 8<<10))}
}

// optional reads facts that no CPU and no memory depends on.
func (t tree) optional() tree {
	t.lenient = true
	return t
}

// isAbsent says whether an error of opening or reading is how the kernel says that it has nothing to tell.
func (t tree) isAbsent(err error) bool { return t.lenient || errors.Is(err, fs.ErrNotExist) }

// text returns a file without the white space around it. A NUL ends it: some kernels pad their masks and lists. Found
// is false where there is no such file.
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

// bytes returns a file's content, valid until the next call.
func (t tree) bytes(name string) ([]byte, error) {
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
		if len(data) > maxFileBytes {
			return nil, fmt.Errorf("read %s: longer than %d bytes", name, maxFileBytes)
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, cap(data))
			*t.buffer = data
		}
	}
}

// parseFile parses a file; found is false where it is absent or empty.
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

// pointer parses a file; it is nil where the file is absent or empty.
func pointer[T any](t tree, name string, parse func(string) (T, error)) (*T, error) {
	value, found, err := parseFile(t, name, parse)
	if err != nil || !found {
		return nil, err
	}
	return &value, nil
}

// set reads the first of the files that is there: a list where its name says so, else a mask. Old kernels have only
// masks. It is empty where all are absent.
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

// entries returns the names in a folder; none where it is absent.
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

// numbered returns the N of every <prefix><N> in a folder. Other names that start alike, such as cpufreq, are not
// ids; numbers out of bounds are an error.
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

// isNumbered says whether the name is <prefix><N>.
func isNumbered(name, prefix string) bool {
	number, ok := strings.CutPrefix(name, prefix)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// link returns where a symbolic link points to, as a path of the tree; ok is false where there is no such link.
func (t tree) link(name string) (target string, ok bool) {
	target, err := fs.ReadLink(t.root, name)
	if err != nil {
		return "", false
	}
	target = path.Join(path.Dir(name), target)
	return target, fs.ValidPath(target)
}

// parseNumber reads a decimal number small enough (< 2⁵³) to be counted in KiB without overflow.
func parseNumber(text string) (uint64, error) {
	number, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a decimal number from 0 to 2^53-1", text)
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

// positive reads a number where the kernel writes 0 for what it does not know: nil then, and where the file is absent.
func (t tree) positive(name string) (*uint64, error) {
	number, err := pointer(t, name, parseNumber)
	if number != nil && *number == 0 {
		number = nil
	}
	return number, err
}
