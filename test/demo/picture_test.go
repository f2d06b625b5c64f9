package main

import (
	"io"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/test/golden"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// TestPictureOfTheReadme draws the claims of the demo's pods on the demo's node, as
// `kubectl numa status -o svg` does. The flag -update rewrites the picture.
func TestPictureOfTheReadme(t *testing.T) {
	const node = "numa-node-0"
	c := occupied.New(t)
	c.AddMachine(node, "rig", nil)
	for _, held := range []struct {
		pod, claim, device, amounts, cpus, mems string
	}{
		{"huge", "huge-zone-4d74q", "numa-0", "cpu=2,memory=64Mi,hugepages2Mi=4Mi", "2-3", "0"},
		{"alpha", "alpha-zone-x7k2p", "numa-1", "cpu=4,memory=256Mi", "4-7", "1"},
		{"beta", "beta-zone-9bqws", "numa-2", "cpu=2,memory=128Mi", "8-9", "2"},
	} {
		c.AddClaim("numa-demo/"+held.claim, occupied.Share{
			Request: "zone", Node: node, Device: held.device, Amounts: held.amounts, CPUs: &held.cpus, Mems: held.mems,
		})
		c.AddPod("numa-demo/"+held.pod, node, held.claim)
	}
	c.AddPod("numa-demo/plain", node)
	cluster := holdings.Of(&c.Snapshot)
	golden.Check(t, "../../docs/status.svg", golden.Render(t, func(w io.Writer) error { return chart.SVG(w, cluster) }))
}
