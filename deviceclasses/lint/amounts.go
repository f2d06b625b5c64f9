package lint

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// memoryStep is the step in which zones give memory.
const memoryStep = 1 << 20

// mostGiB is where a number without a unit is more likely of MiB than of GiB.
const mostGiB = 128

// checkAmounts reports a request for a zone that gets nothing of it, and amounts in bytes
// that lack their unit.
func checkAmounts(ask ask) (findings []Finding) {
	asks := false
	for _, key := range sortedKeys(ask.requests()) {
		amount := ask.requests()[key]
		asks = asks || amount.Sign() > 0
		if advice := unitOf(spelling.Capacity(deviceclasses.DriverName, key), amount); advice != "" {
			findings = append(findings, warn(AmountWithoutUnit, fmt.Sprintf("%s.capacity.requests[%s]", ask.field, key), "%s", advice))
		}
	}
	if !asks && !ask.admin {
		findings = append(findings, warn(ZoneWithoutAmounts, ask.field+".capacity.requests", "the share of the zone would have no CPUs and no memory: request an amount, such as cpu: 4 and memory: 1Gi"))
	}
	return findings
}

// unitOf says what was probably meant by an amount of bytes that is less than one step,
// "" if the amount is larger, or no amount of bytes, or not countable.
func unitOf(name resourceapi.QualifiedName, amount resource.Quantity) string {
	step, unit := resource.MustParse("0"), ""
	size, huge := strings.CutPrefix(string(name), deviceclasses.CapacityHugepagesPrefix)
	switch page, err := resource.ParseQuantity(size); {
	case name == deviceclasses.CapacityMemory:
		step, unit = *resource.NewQuantity(memoryStep, resource.BinarySI), "1Mi"
	case huge && err == nil:
		step, unit = page, "one page of "+size
	}
	if !spelling.Countable(amount) || !spelling.Countable(step) || amount.Sign() <= 0 || amount.Cmp(step) >= 0 {
		return ""
	}
	text := amount.String()
	bytes := amount.Value() // rounded up
	what, meant := fmt.Sprintf("%s is %d bytes", text, bytes), "write a multiple of "+step.String()
	whole := text == fmt.Sprint(bytes)
	if whole {
		what = "an amount without a unit is in bytes, and " + text
	}
	number, thousandths := strings.CutSuffix(text, "m")
	switch {
	case thousandths && len(number) < 4:
		what, meant = text+" is less than a byte", "for MiB, write "+number+"Mi"
	case whole && huge:
		step.Mul(bytes)
		meant = fmt.Sprintf("for %d pages, write %s", bytes, step.String())
	case whole && bytes < mostGiB:
		meant = "for GiB, write " + text + "Gi"
	case whole:
		meant = "for MiB, write " + text + "Mi"
	}
	if whole {
		return fmt.Sprintf("%s becomes %s: %s", what, unit, meant)
	}
	return fmt.Sprintf("%s, and becomes %s: %s", what, unit, meant)
}
