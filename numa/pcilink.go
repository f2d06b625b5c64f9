package numa

import (
	"fmt"
	"strconv"
	"strings"
)

// pciLink reads the speeds and widths of the function's PCIe link that are known.
func (t tree) pciLink(folder string, f *PCIFunction) (err error) {
	var link Link
	if link.SpeedGTps, _, err = parseFile(t, folder+"/current_link_speed", parseLinkSpeed); err != nil {
		return err
	}
	if link.MaxSpeedGTps, _, err = parseFile(t, folder+"/max_link_speed", parseLinkSpeed); err != nil {
		return err
	}
	if link.Width, _, err = parseFile(t, folder+"/current_link_width", parseLinkWidth); err != nil {
		return err
	}
	if link.MaxWidth, _, err = parseFile(t, folder+"/max_link_width", parseLinkWidth); err != nil {
		return err
	}
	if link != (Link{}) {
		f.Link = &link
	}
	return nil
}

// parseLinkSpeed reads a speed such as "8.0 GT/s PCIe", or "8 GT/s" before Linux 5.7.
// It is nil for "Unknown".
func parseLinkSpeed(text string) (*float64, error) {
	if strings.HasPrefix(text, "Unknown") {
		return nil, nil
	}
	number, _, found := strings.Cut(text, " GT/s")
	speed, err := strconv.ParseFloat(number, 32)
	if err != nil || !found || !(speed > 0 && speed < 1e6) {
		return nil, fmt.Errorf("%.80q is not a link speed such as 8.0 GT/s", text)
	}
	return &speed, nil
}

// parseLinkWidth reads a number of lanes. It is nil if the link is down, or if the
// kernel knows nothing about it.
func parseLinkWidth(text string) (*int, error) {
	const down, unknown = 0, 255
	width, err := parseInt(text)
	if err != nil || width <= down || width == unknown {
		return nil, err
	}
	return &width, nil
}
