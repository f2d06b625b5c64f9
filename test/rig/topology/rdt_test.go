package topology

import "testing"

// The names are those of the patch in test/rig/build/qemu.
func TestCPUPropertiesAreThoseOfTheFile(t *testing.T) {
	machine := shipped(t, "cache")
	if got, want := machine.CPUProperties(), ",rdt-ways=12,rdt-classes=16,rdt-shareable=0xc00,rdt-bandwidth=true,rdt-monitoring=true"; got != want {
		t.Errorf("CPUProperties() of cache.yaml = %q, want %q", got, want)
	}
	machine.RDT = nil
	if got := machine.CPUProperties(); got != "" {
		t.Errorf("CPUProperties() without rdt = %q", got)
	}
}

func TestMaskInQuotesIsHexadecimal(t *testing.T) {
	const file = `{sockets: 1, dies: 1, cores: 2, threads: 1, numaNodes: [{cpus: "0-1", memory: 1Gi}], rdt: {ways: 12, classes: 2, shareable: "300"}}`
	machine, err := Parse([]byte(file))
	if err != nil || machine.RDT.Shareable != 0x300 {
		t.Errorf("shareable %x, %v; want 300", machine.RDT.Shareable, err)
	}
}
