package driver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

func TestFrequenciesOfAClaimNowAndAsked(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	mustPrepare(t, driver, configured(claim("a", result("fast", "numa-1", 2), result("slow", "numa-1", 2)),
		performanceOf(resourceapi.AllocationConfigSourceClaim, `"minFrequency": "max", "governor": "performance"`, "fast"),
		performanceOf(resourceapi.AllocationConfigSourceClaim, `"maxFrequency": "1GHz"`, "slow")))
	mustPrepare(t, driver, tunedClaim(claim("b", result("quiet", "numa-0", 2)), `"interrupts": "away"`))
	grant := grantOf(driver, "uid-a")
	n.power.Settle()
	*n.reads = 0
	want := []tuning.FrequencyFigures{{Device: "numa-1", Slowest: sysfs.LowestKHz, Fastest: 3_000_000, AskedMin: sysfs.HighestKHz, AskedMax: sysfs.HighestKHz}}
	if diff := cmp.Diff(want, driver.config.Tuning.Figures(&grant)); diff != "" || *n.reads != 4 {
		t.Errorf("%d files opened, want one for each CPU; figures (-want +got):\n%s", *n.reads, diff)
	}
	n.power.SetOnline(6, false)
	n.power.Unplug(7)
	want[0].Slowest = 3_000_000
	if diff := cmp.Diff(want, driver.config.Tuning.Figures(&grant)); diff != "" {
		t.Errorf("without CPUs 6 and 7 (-want +got):\n%s", diff)
	}
	*n.reads = 0
	quiet := grantOf(driver, "uid-b")
	if figures := driver.config.Tuning.Figures(&quiet); figures != nil || *n.reads > 0 {
		t.Errorf("a claim without frequencies has %v, and %d files were opened", figures, *n.reads)
	}
	if figures := (*tuning.Config)(nil).Figures(&grant); figures != nil || *n.reads > 0 {
		t.Errorf("on a node that changes none, figures are %v, and %d files were opened", figures, *n.reads)
	}
}
