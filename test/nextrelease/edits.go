package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// edit replaces a text, which a file has exactly once.
type edit struct{ file, old, fresh string }

// newest is the newest version of the checkpoint, in its file.
var newest = regexp.MustCompile(`(?m)^\tcheckpointVersion += checkpointV(\d+)$`)

// edits returns the changes of the next release: the checkpoint, and the note in each CDI
// spec, always has a version more, and one more field.
func edits(checkpoint string) ([]edit, error) {
	match := newest.FindStringSubmatch(checkpoint)
	if match == nil {
		return nil, fmt.Errorf("driver/checkpoint.go: no line matches %s", newest)
	}
	now, err := strconv.Atoi(match[1])
	if err != nil {
		return nil, err
	}
	next := fmt.Sprintf("checkpointV%d", now+1)
	return []edit{
		{"driver/checkpoint.go", match[0], fmt.Sprintf("\t%s = %d\n\tcheckpointVersion = %[1]s", next, now+1)},
		{"driver/checkpoint.go", "type Checkpoint struct {\n", "type Checkpoint struct {\n\tRelease string `json:\"release,omitempty\"`\n"},
		{"driver/text.go", "\ttext = append(text, '}')\n\tcopy(text[sum:]", "\tif version >= " + next + " {\n\t\ttext = append(text, `,\"release\":\"next\"`...)\n\t}\n\ttext = append(text, '}')\n\tcopy(text[sum:]"},
		{"driver/driver.go", "version := checkpointV3\n", "version := " + next + "\n"},
		{"driver/grantlist.go", "max(checkpointV3, ", "max(" + next + ", "},
	}, nil
}

// apply returns the changed files. Read returns the content of a file.
func apply(read func(file string) (string, error)) (map[string]string, error) {
	checkpoint, err := read("driver/checkpoint.go")
	if err != nil {
		return nil, err
	}
	list, err := edits(checkpoint)
	if err != nil {
		return nil, err
	}
	changed := map[string]string{}
	for _, e := range list {
		text, again := changed[e.file]
		if !again {
			if text, err = read(e.file); err != nil {
				return nil, err
			}
		}
		if count := strings.Count(text, e.old); count != 1 {
			return nil, fmt.Errorf("%s has %q %d times, want once: adapt the edits of the next release", e.file, e.old, count)
		}
		changed[e.file] = strings.Replace(text, e.old, e.fresh, 1)
	}
	return changed, nil
}
