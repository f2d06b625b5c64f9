package numa

// Platform is which machine it is, as its firmware says (SMBIOS, or the device tree of machines
// without it). Texts are as the maker wrote them, and "" if there are none. It matters
// because what NUMA nodes a machine has is up to its firmware.
type Platform struct {
	Vendor      string // maker
	Product     string // model
	BIOSVendor  string
	BIOSVersion string
	BIOSDate    string
}

// PlatformFiles returns the files with the facts of a Platform, below sys: those of
// drivers/firmware/dmi-id.c and of the device tree. Serial numbers are in other files.
func PlatformFiles() []string {
	return []string{
		dmiFolder + "sys_vendor", dmiFolder + "product_name", dmiFolder + "bios_vendor", dmiFolder + "bios_version", dmiFolder + "bios_date",
		deviceTreeFolder + "model", deviceTreeFolder + "compatible", deviceTreeFolder + "chosen/u-boot,version",
	}
}

const (
	dmiFolder        = "sys/class/dmi/id/"
	deviceTreeFolder = "sys/firmware/devicetree/base/"
)
