package devnode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Number is the device of the node, such as c240:0: its type, major and minor number.
func (n Node) Number() string { return fmt.Sprintf("%s%d:%d", n.Type, n.Major, n.Minor) }

// ParseNumber reads what Number returns. The node has no path.
func ParseNumber(text string) (Node, error) {
	kind := text[:min(1, len(text))]
	major, minor, _ := strings.Cut(text[len(kind):], ":")
	first, err := strconv.ParseUint(major, 10, 32)
	second, also := strconv.ParseUint(minor, 10, 32)
	node := Node{Type: kind, Major: uint32(first), Minor: uint32(second)}
	if err != nil || also != nil {
		return Node{}, fmt.Errorf("device number %q: want one such as c240:0", text)
	}
	return node, node.validateNumber()
}

// IsShared reports whether programs open the node for several functions, as in
// [Access.Shared]. That they have it says nothing about a function.
func (n Node) IsShared() bool { return slices.Contains(sharedPaths, n.Path) }

// sharedPaths are the nodes of the folders that the reader takes for shared ones.
var sharedPaths = []string{"/dev/infiniband/rdma_cm", "/dev/iommu", "/dev/kfd", "/dev/vfio/vfio"}
