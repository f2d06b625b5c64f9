package lint

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// guards finds selectors that make the scheduler give up at a device, or keep it busy.
func (l *Linter) guards(field string, class, own []resourceapi.DeviceSelector) []Finding {
	result := l.known.Selectors().Try(class, own)
	if endless := result.Endless; endless != nil {
		return []Finding{fail(EndlessQuantity, fmt.Sprintf("%s[%d].cel.expression", field, endless.Index), "quantity(%.40q), allowed are amounts that a device can have: the scheduler would compute for hours", endless.Text)}
	}
	missing := result.Missing
	if missing == nil {
		return nil
	}
	fix := fmt.Sprintf("read it with .?%s.orValue(...)", missing.Name)
	switch ours := result.Zones || result.Caches || result.Functions; {
	case missing.Foreign && ours:
		fix = fmt.Sprintf("begin with device.driver == %q &&", deviceclasses.DriverName)
	case missing.Foreign: // it is not known which driver has it
		fix = `begin with device.driver == "NAME" &&, with the driver whose devices you want`
	}
	return []Finding{warn(MissingGuard, fmt.Sprintf("%s[%d].cel.expression", field, missing.Index),
		"it reads %s, and the scheduler gives up on the pod if a device lacks that: %s", missing.Name, fix)}
}
