package probe

import (
	"fmt"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Administrators' classes with ranges, and what tenants write to hide a zone from devices
// that are made up. None of it excludes zones.
func TestNoMadeUpZoneIsNoProof(t *testing.T) {
	const cpus = `device.capacity["dra.numa"].cpu`
	zone := selectors(expand(`OURS && A.kind == "zone"`)...)
	for _, expression := range expand(
		`OURS && A.kind == "zone" && `+cpus+`.isGreaterThan(quantity("20")) && `+cpus+`.isLessThan(quantity("200"))`,
		`OURS && A.kind == "zone" && `+cpus+`.isGreaterThan(quantity("20")) && device.capacity["dra.numa"].memory.isLessThan(quantity("1Ti"))`,
		`OURS && A.kind == "zone" && A.threadsPerCore * 5 == 10`,
		`OURS && A.kind == "zone" && device.capacity["dra.numa"]["c"+"pu"].isGreaterThan(quantity("20")) && device.capacity["dra.numa"]["c"+"pu"].isLessThan(quantity("200"))`,
		`OURS && A.kind == "zone" && has(N.numaNode) && N.numaNode * 7 == 21`,
		`OURS && A.kind == "zone" && A.coreType.size() == 8 && A.coreType.startsWith("st") && A.coreType.endsWith("rd")`,
		`OURS && A.kind == "zone" && A.?l3.orValue(0) * A.?l3.orValue(0) == 49`,
		`OURS && A.kind == "zone" && [1, 2, 3].exists(n, n * A.threadsPerCore == 6)`,
		`OURS && A.kind == "zone" && cel.bind(c, device.capacity["dra.numa"], c.cpu.isGreaterThan(quantity("20")) && c.cpu.isLessThan(quantity("21")))`,
		`OURS && "zo" + "ne" == A.kind && A.?memoryTier.orValue(0) * 3 == 12`,
		`OURS && device.attributes["dra.numa"].exists(k, k == "coreType") && A.threadsPerCore * 5 == 10`,
		`cel.bind(device, {"driver": "dra.cpu"}, device.driver == "dra.cpu") && OURS && A.threadsPerCore * 5 == 10`,
		`[{"driver": "dra.cpu"}].all(device, device.driver == "dra.cpu") && OURS && A.threadsPerCore * 5 == 10`,
		`!(dyn(device) == dyn({}))`,
		`OURS && size(device.attributes) > 0 && A.threadsPerCore * 5 == 10`,
	) {
		own := selectors(expression)
		if got, err := New().OfZones(zone, own, asking("cpu")); got != OnlyZones || err != nil {
			t.Errorf("%s in a class of zones: %d, %v", expression, got, err)
		}
		if got, err := New().OfZones(selectors("true"), own, asking("cpu")); got == NoZone || err != nil {
			t.Errorf("%s in a class of anything: %d, %v", expression, got, err)
		}
		if got, err := New().OfZones(own, nil, asking("cpu")); got == NoZone || err != nil {
			t.Errorf("%s of a class: %d, %v", expression, got, err)
		}
	}
}

func TestPossible(t *testing.T) {
	const cache = `OURS && A.kind == "cache"`
	for expression, want := range map[string]string{
		`OURS && A.kind == "zone"`: "zones",
		`"dra.numa" == device.driver && A.kind != "cache" && A.?kind.orValue("") != "gpu"`: "zones functions",
		`OURS`:                                                     "zones [guaranteed besteffort shared] functions",
		`OURS || device.driver == "dra.cpu"`:                       "zones [guaranteed besteffort shared] functions foreign",
		`OURS && has(A.l3)`:                                        "zones [guaranteed besteffort shared] functions",
		`OURS && A.kind.startsWith("c")`:                           "[guaranteed besteffort shared]",
		`OURS && A.kind in ["gpu", "nic"]`:                         "functions",
		`OURS && (A.kind == "gpu" ? A.mig : A.kind == "zone")`:     "zones functions",
		`device.driver == "dra.cpu"`:                               "foreign",
		`device.driver == "dra.cpu" && A.kind == "zone"`:           "foreign",
		`device.driver.startsWith("dra.numa") && A.kind == "zone"`: "zones foreign",
		`A.kind == "gpu"`:                                          "functions foreign",
		`device.attributes["gpu.example.com"].model == "x"`:        "zones [guaranteed besteffort shared] functions foreign",
		cache:                            "[guaranteed besteffort shared]",
		cache + ` && A.pool == "shared"`: "[shared]",
		cache + ` && A.?pool.orValue("") in ["shared", "guaranteed"]`: "[guaranteed shared]",
		cache + ` && A.pool == "gold"`:                                "",
		`false`:                                                       "",
	} {
		possible, err := New().Possible(nil, selectors(expand(expression)...), nil)
		got := ""
		for _, part := range []struct {
			is   bool
			text string
		}{{possible.Zones, "zones"}, {len(possible.Pools) > 0, fmt.Sprint(possible.Pools)}, {possible.Functions, "functions"}, {possible.Foreign, "foreign"}} {
			switch {
			case part.is && got == "":
				got = part.text
			case part.is:
				got += " " + part.text
			}
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", expression, got, err, want)
		}
	}
}

func TestBrokenSelectorsExcludeNothing(t *testing.T) {
	for _, broken := range []string{"nonsense", "1 +", `device.driver`, ""} {
		class, own := selectors("true"), selectors(`device.driver == "dra.cpu"`, broken)
		if possible, err := New().Possible(class, own, nil); err == nil || !possible.Zones || !possible.Foreign || len(possible.Pools) != len(deviceclasses.ClaimPools()) {
			t.Errorf("%q: %+v, %v", broken, possible, err)
		}
		if got, err := New().OfZones(class, own, asking("cpu")); got != Unclear || err == nil {
			t.Errorf("%q: %d, %v", broken, got, err)
		}
	}
}
