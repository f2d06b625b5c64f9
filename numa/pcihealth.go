package numa

import (
	"fmt"
	"strconv"
	"strings"
)

// pciHealth reads how many fatal errors the function has seen,
// Documentation/ABI/testing/sysfs-bus-pci-devices-aer. It also reads whether the NVMe
// driver has given up its controller: nvme_ctrl_state in drivers/nvme/host/nvme.h.
// Linux 6.12 counts the fatal error of a function only at the root port, because the
// kernel cannot read the function at that time.
func (t tree) pciHealth(folder string, f *PCIFunction) error {
	seen, err := pointer(t, folder+"/aer_dev_fatal", parseFatalErrors)
	if err != nil {
		return err
	}
	received, err := pointer(t, folder+"/aer_rootport_total_err_fatal", parseCount)
	if err != nil {
		return err
	}
	for _, count := range []*uint64{seen, received} {
		if count != nil {
			f.FatalErrors = max(f.FatalErrors, *count)
		}
	}
	for _, controller := range f.NVMe {
		state, _, err := t.text(folder + "/nvme/" + controller + "/state")
		if err != nil {
			return err
		}
		f.Dead = f.Dead || state == "dead"
	}
	return nil
}

// parseFatalErrors reads the number of the TOTAL_ERR_FATAL line, the sum of all other
// lines. Each of these counts one kind of error, such as "Undefined 0".
func parseFatalErrors(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		if number, isTotal := strings.CutPrefix(strings.TrimSpace(line), "TOTAL_ERR_FATAL "); isTotal {
			return strconv.ParseUint(number, 10, 64)
		}
	}
	return 0, fmt.Errorf("%.80q has no TOTAL_ERR_FATAL line", text)
}

func parseCount(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }
