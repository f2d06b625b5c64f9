package attached

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	samples "github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestNothingIsSelectedByDefault(t *testing.T) {
	if got := Devices(samples.Machine(t, "dgx-h100"), selected(t, deviceclasses.DeviceSelection{})); got != nil {
		t.Errorf("selected %v", names(got))
	}
	if got := Devices(samples.Machine(t, "dgx-h100"), selected(t, deviceclasses.DeviceSelection{Exclude: []string{"true"}})); got != nil {
		t.Errorf("selected %v", names(got))
	}
}

// The machine has 8 GPUs, 10 cards of which 2 have 8 virtual functions each for
// VFIO, 10 drives and a console.
func TestSelection(t *testing.T) {
	const ours = `device.attributes["dra.numa"]`
	for name, row := range map[string]struct {
		config deviceclasses.DeviceSelection
		want   int
	}{
		"GPUs":                 {deviceclasses.DeviceSelection{Presets: []string{"gpu"}}, 8},
		"cards":                {deviceclasses.DeviceSelection{Presets: []string{"nic"}}, 10},
		"drives":               {deviceclasses.DeviceSelection{Presets: []string{"nvme"}}, 10},
		"virtual functions":    {deviceclasses.DeviceSelection{Presets: []string{"vf"}}, 16},
		"VFIO":                 {deviceclasses.DeviceSelection{Presets: []string{"vfio"}}, 16},
		"several":              {deviceclasses.DeviceSelection{Presets: []string{"gpu", "vf", "vfio"}}, 24},
		"all":                  {deviceclasses.DeviceSelection{Include: []string{"true"}}, 45},
		"none":                 {deviceclasses.DeviceSelection{Include: []string{"false"}}, 0},
		"an address less":      {deviceclasses.DeviceSelection{Presets: []string{"gpu"}, Exclude: []string{"0000:16:00.0", "0000:17:00.0"}}, 7},
		"a zone less":          {deviceclasses.DeviceSelection{Presets: []string{"gpu"}, Exclude: []string{`device.attributes["resource.kubernetes.io"].numaNode == 1`}}, 4},
		"by interface":         {deviceclasses.DeviceSelection{Include: []string{ours + `.interface.startsWith("ibp")`}}, 8}, // GPUs have none
		"by interface, else":   {deviceclasses.DeviceSelection{Include: []string{ours + `.?interface.orValue("x") == "x"`}}, 35},
		"but an interface":     {deviceclasses.DeviceSelection{Include: []string{"true"}, Exclude: []string{ours + `.interface == "enp12s0np0"`}}, 44},
		"with a domain bound":  {deviceclasses.DeviceSelection{Include: []string{`cel.bind(a, ` + ours + `, a.kind == "nic" && a.linkMbps >= 400000)`}}, 8},
		"by name in brackets":  {deviceclasses.DeviceSelection{Include: []string{ours + `["vendorID"] in ["10de", "1002"] && "uuid" in ` + ours}}, 8},
		"by driver":            {deviceclasses.DeviceSelection{Include: []string{`device.driver == "dra.numa" && ` + ours + `.kind == "pci"`}}, 1},
		"several expressions":  {deviceclasses.DeviceSelection{Include: []string{ours + `.kind == "pci"`, ours + `.kind == "gpu"`}}, 9},
		"a computed attribute": {deviceclasses.DeviceSelection{Include: []string{ours + `.exists(name, name == "uu" + "id")`}}, 8},
	} {
		got := Devices(samples.Machine(t, "dgx-h100"), selected(t, row.config))
		if len(got) != row.want {
			t.Errorf("%s: %d selected, want %d: %v", name, len(got), row.want, names(got))
		}
	}
}

func TestBadSelectionsAreRefusedWithTheirPlace(t *testing.T) {
	const ours = `device.attributes["dra.numa"]`
	for name, row := range map[string]struct {
		config deviceclasses.DeviceSelection
		want   string
	}{
		"preset":            {deviceclasses.DeviceSelection{Presets: []string{"gpu", "tpu"}}, `devices.presets[1]: "tpu", allowed are gpu, nic, nvme, vf, vfio`},
		"syntax":            {deviceclasses.DeviceSelection{Include: []string{"true", ours + `.kind = "gpu"`}}, `devices.include[1]: line 1, column 36: Syntax error: token recognition error at: '= '`},
		"variable":          {deviceclasses.DeviceSelection{Include: []string{`kind == "gpu"`}}, `devices.include[0]: line 1, column 1: undeclared reference to 'kind'`},
		"field":             {deviceclasses.DeviceSelection{Include: []string{`device.kind == "gpu"`}}, `devices.include[0]: line 1, column 7: undefined field 'kind'`},
		"result":            {deviceclasses.DeviceSelection{Include: []string{`"gpu"`}}, `devices.include[0]: must evaluate to bool`},
		"attribute":         {deviceclasses.DeviceSelection{Include: []string{"true &&\n" + ours + `.knid == "gpu"`}}, `devices.include[0]: line 2, column 30: no device has attribute dra.numa/knid, allowed are socket, iommuGroup`},
		"in brackets":       {deviceclasses.DeviceSelection{Include: []string{ours + `["knid"] == "gpu"`}}, `no device has attribute dra.numa/knid`},
		"optional":          {deviceclasses.DeviceSelection{Include: []string{ours + `.?knid.orValue("x") == "gpu"`}}, `no device has attribute dra.numa/knid`},
		"optional brackets": {deviceclasses.DeviceSelection{Include: []string{ours + `[?"knid"].orValue("x") == "gpu"`}}, `no device has attribute dra.numa/knid`},
		"in":                {deviceclasses.DeviceSelection{Include: []string{`"knid" in ` + ours}}, `no device has attribute dra.numa/knid`},
		"has":               {deviceclasses.DeviceSelection{Include: []string{`has(` + ours + `.knid)`}}, `no device has attribute dra.numa/knid`},
		"bound":             {deviceclasses.DeviceSelection{Include: []string{`cel.bind(a, ` + ours + `, a.knid == "gpu")`}}, `no device has attribute dra.numa/knid`},
		"in a list":         {deviceclasses.DeviceSelection{Include: []string{`["a"].exists(x, x in [` + ours + `.knid])`}}, `no device has attribute dra.numa/knid`},
		"in a map":          {deviceclasses.DeviceSelection{Include: []string{`{"a": ` + ours + `.knid}["a"] == "gpu"`}}, `no device has attribute dra.numa/knid`},
		"standard":          {deviceclasses.DeviceSelection{Include: []string{`device.attributes["resource.kubernetes.io"].pciBusId == "x"`}}, `allowed are pciBusID, pcieRoot, numaNode`},
		"domain":            {deviceclasses.DeviceSelection{Include: []string{`device.attributes["gpu.nvidia.com"].uuid == "x"`}}, `no device has attributes of "gpu.nvidia.com", allowed are resource.kubernetes.io, dra.net, gpu.amd.com, dra.numa`},
		"capacity":          {deviceclasses.DeviceSelection{Include: []string{`device.capacity["dra.numa"].memory.isGreaterThan(quantity("1Gi"))`}}, `no PCI function has capacities`},
		"types":             {deviceclasses.DeviceSelection{Include: []string{ours + `.kind > 3`}}, `devices.include[0]: for a device of kind gpu: no such overload`},
		"excluded":          {deviceclasses.DeviceSelection{Exclude: []string{"0000:3b:00"}}, `devices.exclude[0]: want a PCI address such as 0000:3b:00.0, or an expression: line 1, column 5: Syntax error`},
		"too long":          {deviceclasses.DeviceSelection{Include: []string{"true" + strings.Repeat(" ", 10<<10)}}, `devices.include[0]: the expression has 10244 bytes, at most 10240 are allowed`},
	} {
		_, err := NewSelection(row.config)
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant one line with %s", name, err, row.want)
		}
	}
}

// The name of a variable may be used for something else inside.
func TestABoundNameEndsWithItsBlock(t *testing.T) {
	const text = `cel.bind(a, device.attributes["dra.numa"], cel.bind(a, {"knid": "gpu"}, a.knid == "gpu") && a.kind == "gpu")`
	if _, err := compile(text); err != nil {
		t.Error(err)
	}
	const wrong = `cel.bind(a, device.attributes["dra.numa"], cel.bind(a, {"knid": "gpu"}, a.knid == "gpu") && a.knid == "gpu")`
	if _, err := compile(wrong); err == nil || !strings.Contains(err.Error(), "line 1, column 94") {
		t.Errorf("%s: %v", wrong, err)
	}
}

// What cannot be evaluated publishes nothing, wherever it stands.
func TestAnExpressionThatFailsPublishesNothing(t *testing.T) {
	const fails = `1 / (device.attributes["resource.kubernetes.io"].numaNode) == 1` // on NUMA node 0
	machine := samples.Machine(t, "dgx-h100")
	included := names(Devices(machine, selected(t, deviceclasses.DeviceSelection{Include: []string{fails}})))
	excluded := names(Devices(machine, selected(t, deviceclasses.DeviceSelection{Presets: []string{"gpu"}, Exclude: []string{fails}})))
	if slices.Contains(included, "gpu-0000-16-00-0") || !slices.Contains(included, "gpu-0000-98-00-0") || len(excluded) != 0 {
		t.Errorf("included %v, left after excluding %v", included, excluded)
	}
}

func TestPresetsNameKinds(t *testing.T) {
	for _, name := range deviceclasses.Presets() {
		if _, err := NewSelection(deviceclasses.DeviceSelection{Presets: []string{name}}); err != nil {
			t.Errorf("preset %s: %v", name, err)
		}
	}
}

// An expression is refused in one line, or evaluated for every device.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		"true", `device.attributes["dra.numa"].kind == "gpu"`, `cel.bind(a, device.attributes["dra.numa"], a.?uuid.orValue("") != "")`,
		`"x" in device.attributes["dra.net"]`, `[1].exists(x, {"a": x}["a"] == 1)`, `device.driver.matches("(")`, "\x00", `a.b.c`, `has(device.x.y)`, `1/0 == 1`,
	} {
		f.Add(text)
	}
	devices := Devices(samples.Machine(f, "epyc-mi300x"), everything(f))
	f.Fuzz(func(t *testing.T, text string) {
		e, err := compile(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("compile(%q) = %q", text, err)
			}
			return
		}
		for _, d := range devices {
			if holds, err := e.holds(d); holds && err != nil {
				t.Errorf("%q holds for %s and %v", text, d.Name, err)
			}
		}
	})
}
