package platform

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
)

func TestRead(t *testing.T) {
	const dmi, tree = "sys/devices/virtual/dmi/id/", "sys/firmware/devicetree/base/"
	links := map[string]string{"sys/class/dmi/id": "../../devices/virtual/dmi/id"}
	for name, row := range map[string]struct {
		files map[string]string
		want  *numa.Platform
	}{
		"nothing": {nil, nil},
		"SMBIOS": {
			map[string]string{
				dmi + "sys_vendor": "Example\n", dmi + "product_name": "Server 1\n", dmi + "bios_vendor": "Firm\n",
				dmi + "bios_version": "2.4\n", dmi + "bios_date": "04/14/2022\n", dmi + "product_serial": "secret\n",
			},
			&numa.Platform{Vendor: "Example", Product: "Server 1", BIOSVendor: "Firm", BIOSVersion: "2.4", BIOSDate: "04/14/2022"},
		},
		"what makers write if they have nothing to say": {
			map[string]string{dmi + "sys_vendor": "To Be Filled By O.E.M.\n", dmi + "product_name": "Default string\n", dmi + "bios_version": "1\n"},
			&numa.Platform{BIOSVersion: "1"},
		},
		"only such words": {map[string]string{dmi + "product_name": "System Product Name\n"}, nil},
		"device tree": {
			map[string]string{tree + "model": "Board 4\x00", tree + "compatible": "maker,board-4\x00soc,x\x00", tree + "chosen/u-boot,version": "2026.04\x00"},
			&numa.Platform{Vendor: "maker", Product: "Board 4", BIOSVendor: "U-Boot", BIOSVersion: "2026.04"},
		},
		"a stranger's texts": {
			map[string]string{dmi + "sys_vendor": "a\x1b[31m\nb\n", dmi + "product_name": string(make([]byte, 1<<20))},
			&numa.Platform{Vendor: `a\u001b[31m b`},
		},
	} {
		got, err := Read(memfs.New(row.files, links, nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := Read(fstest.MapFS{"sys/class/dmi/id/sys_vendor": {Mode: 1 << 31}}); err == nil {
		t.Error("a folder in the place of a file is read")
	}
}
