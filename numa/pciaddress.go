package numa

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// pciAddress is the address of a PCI function, such as 0000:3b:00.0. Behind a VMD the
// domain has five digits.
type pciAddress struct {
	domain   uint32
	bus      uint8
	device   uint8 // 0 to 31
	function uint8 // 0 to 7
}

// parsePCIAddress reads exactly what the kernel prints: no capitals, no signs, no digit
// too many or too few.
func parsePCIAddress(text string) (pciAddress, error) {
	domain, rest, _ := strings.Cut(text, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	device, function, _ := strings.Cut(rest, ".")
	fields, bits := [4]string{domain, bus, device, function}, [4]int{32, 8, 5, 3}
	var numbers [4]uint64
	for i := range fields {
		numbers[i], _ = strconv.ParseUint(fields[i], 16, bits[i]) // after an error the address prints as another text
	}
	address := pciAddress{uint32(numbers[0]), uint8(numbers[1]), uint8(numbers[2]), uint8(numbers[3])}
	if address.String() != text {
		return pciAddress{}, fmt.Errorf("%.80q is not a PCI address such as 0000:3b:00.0", text)
	}
	return address, nil
}

// String prints the address as the kernel does.
func (a pciAddress) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%d", a.domain, a.bus, a.device, a.function)
}

// compare sorts by domain, bus, device and function.
func (a pciAddress) compare(b pciAddress) int {
	return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.bus, b.bus),
		cmp.Compare(a.device, b.device), cmp.Compare(a.function, b.function))
}

// IsPCIAddress reports whether a text is a PCI address as the kernel prints it, such as
// 0000:3b:00.0.
func IsPCIAddress(text string) bool {
	_, err := parsePCIAddress(text)
	return err == nil
}

// isRootBus reports whether a folder's name is that of a PCI host bridge, such as
// pci0000:00.
func isRootBus(name string) bool {
	return strings.HasPrefix(name, "pci") && IsPCIAddress(name[len("pci"):]+":00.0")
}
