package numa

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// tree is the root of a machine's files. Its readers answer "absent" for a missing file and for an empty one.
type tree struct {
	root fs.FS
}

// text returns a file without the white space around it. A NUL ends it: some kernels pad their masks and lists.
func (t tree) text(name string) (string, error) {
	data, err := fs.ReadFile(t.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	data, _, _ = bytes.Cut(data, []byte{0})
	return strings.TrimSpace(string(data)), nil
}

// parseFile parses a file; found is false where it is absent.
func parseFile[T any](t tree, name string, parse func(string) (T, error)) (value T, found bool, err error) {
	text, err := t.text(name)
	if err != nil || text == "" {
		return value, false, err
	}
	if value, err = parse(text); err != nil {
		return value, false, fmt.Errorf("read %s: %w", name, err)
	}
	return value, true, nil
}

// set reads the first of the files that is there: a list where its name says so, else a mask. Old kernels have only
// masks. It is empty where all are absent.
func (t tree) set(names ...string) (cpuset.Set, error) {
	for _, name := range names {
		parse := cpuset.ParseMask
		if strings.HasSuffix(name, "list") {
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	var ids cpuset.Set
	for _, name := range names {
		number, ok := strings.CutPrefix(name, prefix)
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		id, err := cpuset.Parse(number)
		if err != nil {
			return cpuset.Set{}, fmt.Errorf("read %s/%s: %w", folder, name, err)
		}
		ids = ids.Union(id)
	}
	return ids, nil
}

// parseNumber reads a decimal number small enough (< 2⁵³) to be counted in KiB without overflow.
func parseNumber(text string) (uint64, error) {
	number, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a decimal number from 0 to 2^53-1", text)
	}
	return number, nil
}
