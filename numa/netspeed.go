package numa

import (
	"fmt"
	"math"
	"strconv"
)

// netLinks reads the speed of the function's network interfaces and keeps the highest;
// Documentation/ABI/testing/sysfs-class-net.
func (t tree) netLinks(folder string, f *PCIFunction) error {
	folders, err := t.driverFolders(folder, f)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		for _, name := range f.Net {
			speed, _, err := parseFile(t, folder+"/net/"+name+"/speed", parseNetSpeed)
			if err != nil {
				return err
			}
			if speed != nil && (f.LinkMbps == nil || *f.LinkMbps < *speed) {
				f.LinkMbps = speed
			}
		}
	}
	return nil
}

// parseNetSpeed reads a speed in Mbit/s. It is nil for -1, which means that the
// interface is down or has no speed. Old kernels print this -1 as an unsigned number.
func parseNetSpeed(text string) (*int, error) {
	speed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%.80q is not a speed in Mbit/s", text)
	}
	if speed <= 0 || speed > math.MaxInt32 {
		return nil, nil
	}
	return new(int(speed)), nil
}
