package kubeletplugin

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// placing is a container runtime beside whose driver another program places containers.
type placing struct {
	SharedPool
	names []string
}

func (p *placing) Unexplained() []string { return p.names }

func TestCpusetsOfAnotherProgramAreOneEventOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		pool := &placing{}
		p := &Plugin{sharedPool: pool, publisher: startReady(t, c).publisher}
		for _, names := range [][]string{nil, {"default/a/main (1) with cpus 2-3"}, {"default/b/main (2) with cpus 4", "default/c/main (3) with cpus 4"}, nil, nil} {
			pool.names = names
			p.seeUnexplained()
			time.Sleep(200 * time.Millisecond)
			if counted := p.counters.unexplained.Load(); counted != int64(len(names)) {
				t.Errorf("%d containers are counted, want %d", counted, len(names))
			}
		}
		want := []string{
			"Warning NUMACpusetsUnexplained " + deviceclasses.FaultOf(deviceclasses.FaultUnexplained).Note,
			"Normal NUMACpusetsExplained Claims and this driver explain the cpusets of all containers",
		}
		if told := waitForEvents(t, c, 2); !slices.Equal(told, want) {
			t.Errorf("events %q, want %q", told, want)
		}
	})
}
