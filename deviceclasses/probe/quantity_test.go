package probe

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// What would take hours is not evaluated, so nothing is known of it.
func TestEndlessQuantities(t *testing.T) {
	for expression, want := range map[string]struct {
		endless bool   // for a device that is made up
		literal string // that Try names
		problem string // for a real device
	}{
		`quantity("1e300000000").isLessThan(quantity("1"))`:                                                 {true, "1e300000000", `quantity("1e300000000")`},
		`device.capacity["dra.numa"].cpu.compareTo(quantity("-1e300000000")) > 0`:                           {true, "-1e300000000", `quantity("-1e300000000")`},
		`quantity("1e3" + "00000000").isLessThan(quantity("1"))`:                                            {true, "", "a text that is not written in the selector"},
		`["1e300000000"].exists(x, quantity(x).isLessThan(quantity("1")))`:                                  {true, "", "a text that is not written in the selector"},
		`device.attributes["a.b"].c == "1e300000000" && quantity(device.attributes["a.b"].c).isInteger()`:   {true, "", ""},
		`device.capacity["dra.numa"].cpu.isGreaterThan(quantity("4"))`:                                      {false, "", ""},
		`isQuantity("1e300000000") && device.capacity["dra.numa"].memory.compareTo(quantity("500Gi")) <= 0`: {false, "", ""},
	} {
		selectors := []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
		compiled, err := allocation.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		result := New().Try(nil, selectors)
		literal := ""
		if result.Endless != nil {
			literal = result.Endless.Text
		}
		possible, err := New().Possible(nil, selectors, nil)
		if result.Incomplete != want.endless || literal != want.literal || err != nil || want.endless && !possible.Foreign {
			t.Errorf("%s: %+v, %q, %+v, %v", expression, result, literal, possible, err)
		}
		ours := selectors[0]
		ours.CEL = &resourceapi.CELDeviceSelector{Expression: `device.driver == "dra.numa" && ` + expression}
		if possible, err := New().Possible(nil, []resourceapi.DeviceSelector{ours}, nil); err != nil || possible.Foreign {
			t.Errorf("%s: %+v, %v", ours.CEL.Expression, possible, err)
		}
		problem := ""
		if err := CheckQuantities(compiled); err != nil {
			problem = err.Error()
		}
		if !strings.Contains(problem, want.problem) || (problem == "") != (want.problem == "") {
			t.Errorf("%s: problem %q, want %q", expression, problem, want.problem)
		}
	}
}
