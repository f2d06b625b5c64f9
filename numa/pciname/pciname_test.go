package pciname

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/u-root/u-root/pkg/pci"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const head = `# Names of PCI vendors and products, from the PCI ID Project (https://pci-ids.ucw.cz).
# Copyright Martin Mares and Albert Pool. The file LICENSE has the conditions.
# Written by: go test ./numa/pciname -update
# It takes the names of github.com/u-root/u-root/pkg/pci. A newer u-root has newer names.
`

// rowsOfURoot returns all names of u-root by the key of their line.
func rowsOfURoot() map[string]string {
	rows := map[string]string{}
	for _, vendor := range pci.IDs {
		rows[fmt.Sprintf("%04x\t", vendor.ID)] = vendor.Name
		for _, device := range vendor.Devices {
			rows[fmt.Sprintf("%04x%04x\t", vendor.ID, device.ID)] = device.Name
		}
	}
	return rows
}

// u-root itself is not linked: it compiles only on Linux, and its table has pointers, which
// makes it larger.
func TestTableHasTheNamesOfURoot(t *testing.T) {
	rows := rowsOfURoot()
	text := strings.Builder{}
	text.WriteString(head)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		text.WriteString(key + rows[key] + "\n")
	}
	files.Golden(t, "names.txt", text.String())
}

func TestEveryNameIsFound(t *testing.T) {
	rows := rowsOfURoot()
	for _, vendor := range pci.IDs {
		for _, device := range vendor.Devices {
			vendorName, product := Lookup(vendor.ID, device.ID)
			if vendorName != vendor.Name || product != rows[fmt.Sprintf("%04x%04x\t", vendor.ID, device.ID)] {
				t.Fatalf("%04x:%04x is %q %q, want %q %q", vendor.ID, device.ID, vendorName, product, vendor.Name, device.Name)
			}
		}
	}
}

func TestUnknownIDsHaveNoNames(t *testing.T) {
	for _, row := range []struct {
		vendor, device uint16
		wantVendor     string
		wantProduct    string
	}{
		{0x8086, 0x10d3, "Intel Corporation", "82574L Gigabit Network Connection"},
		{0x8086, 0xffff, "Intel Corporation", ""},
		{0x0000, 0x0000, "", ""},
		{0xfff0, 0x10d3, "", ""},
		{0xffff, 0xffff, "Illegal Vendor ID", ""}, // the last line
	} {
		if vendor, product := Lookup(row.vendor, row.device); vendor != row.wantVendor || product != row.wantProduct {
			t.Errorf("%04x:%04x is %q %q, want %q %q", row.vendor, row.device, vendor, product, row.wantVendor, row.wantProduct)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		Lookup(0x8086, 0x10d3)
		Lookup(0x10de, 0x2330)
	}
}
