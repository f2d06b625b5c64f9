package kubeletplugin

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

func TestUnmetSettingsAreEventsOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		caches := map[string]string{driver.SettingCache: "caches are not published: resctrl is not mounted"}
		for _, unmet := range []map[string]string{nil, caches, caches, {}} {
			p.say(deviceclasses.FaultUnmet, notes(deviceclasses.FaultUnmet, unmet))
			time.Sleep(200 * time.Millisecond) // each is seen, and none again
		}
		expectNodeEvents(t, c, "NUMASetting",
			"Warning NUMASettingUnmet The node does not do what its NodeConfig says in cache: caches are not published: resctrl is not mounted\n"+
				"Normal NUMASettingsMet The node carries out all settings of its NodeConfig")
	})
}
