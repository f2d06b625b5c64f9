package devnode

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
)

const (
	devFolder = "/dev/"

	// The largest device numbers, include/linux/kdev_t.h.
	maxMajor = 1<<12 - 1
	maxMinor = 1<<20 - 1

	maxInterfaceName = 15 // IFNAMSIZ without the NUL
)

// node reads the folder of a device; ok is false if the device has no node, because it
// is a disk hidden behind another, or because its driver is gone.
func (r *reader) node(folder string) (node Node, ok bool, err error) {
	number, err := r.text(folder + "/dev")
	if err != nil || number == "" {
		return Node{}, false, err
	}
	if node.Major, node.Minor, err = parseNumber(number); err != nil {
		return Node{}, false, fmt.Errorf("%s/dev: %w", folder, err)
	}
	text, err := r.text(folder + "/uevent")
	if err != nil {
		return Node{}, false, err
	}
	name, node := nameIn(text, node)
	if !isDeviceName(name) {
		return Node{}, false, fmt.Errorf("%s/uevent: DEVNAME %.80q is not a path below %s", folder, name, devFolder)
	}
	node.Path = devFolder + name
	if err := node.Validate(); err != nil {
		return Node{}, false, fmt.Errorf("%s: %w", folder, err)
	}
	return node, true, nil
}

// nameIn reads the name and the type of a node from the uevent file of its device. Only
// disks state a type; all other devices are character devices.
func nameIn(uevent string, node Node) (string, Node) {
	var name string
	node.Type = TypeCharacter
	for line := range strings.SplitSeq(uevent, "\n") {
		switch key, value, _ := strings.Cut(line, "="); {
		case key == "DEVNAME":
			name = value
		case key == "DEVTYPE" && value == "disk":
			node.Type = TypeBlock
		}
	}
	return name, node
}

func parseNumber(text string) (major, minor uint32, err error) {
	first, second, _ := strings.Cut(text, ":")
	high, errHigh := strconv.ParseUint(first, 10, 32)
	low, errLow := strconv.ParseUint(second, 10, 32)
	if errHigh != nil || errLow != nil {
		return 0, 0, fmt.Errorf("%.80q is not a device number such as 226:0", text)
	}
	return uint32(high), uint32(low), nil
}

// isDeviceName reports whether a name is that of one file below /dev: no part of it
// leads elsewhere, and it is one line of printable text without spaces.
func isDeviceName(name string) bool {
	return fs.ValidPath(name) && name != "." &&
		!strings.ContainsFunc(name, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) })
}

// IsInterfaceName reports whether a network interface may have the name. It accepts a
// name that dev_valid_name in net/core/dev.c accepts, if the name is printable ASCII
// and has no comma, because names are written in lists.
func IsInterfaceName(name string) bool {
	return name != "" && len(name) <= maxInterfaceName && name != "." && name != ".." &&
		!strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= unicode.MaxASCII || strings.ContainsRune("/:,", c) })
}

// text returns a file's content without the white space around it; "" if there is no
// such file.
func (r *reader) text(name string) (string, error) {
	data, err := fs.ReadFile(r.root, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}
