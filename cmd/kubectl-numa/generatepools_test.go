package main

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// slices takes what generate pools writes, and publishes all pools.
func TestGeneratedPoolsFitTheirMachine(t *testing.T) {
	for preset, byL3 := range map[string]bool{"intel-2s": false, "epyc-2s-nps1": true} {
		text := mustCall(t, "generate", "pools", "--root", sample.Folder(t, preset))
		if strings.Contains(text, "zoneBy: l3") != byL3 {
			t.Errorf("%s: pools are\n%s", preset, text)
		}
		if fromPreset := mustCall(t, "generate", "pools", "--preset", preset); fromPreset != text {
			t.Errorf("%s: pools of --preset are\n%s, of --root\n%s", preset, fromPreset, text)
		}
		published := mustCall(t, "slices", "--preset", preset, "--node-name", "n", "--config", file(t, text))
		for _, pool := range []string{"guaranteed", "besteffort", "shared"} {
			if !strings.Contains(published, "name: cache-0-"+pool) {
				t.Errorf("%s: the slices have no pool %s", preset, pool)
			}
		}
	}
}

func TestPoolsOfAMachineWithoutDividedCaches(t *testing.T) {
	exitCode, stdout, stderr := call("generate", "pools", "--preset", "rig")
	if exitCode == exitDone || stdout != "" || !strings.Contains(stderr, "the kernel does not divide level-3 caches, or resctrl is not mounted") {
		t.Errorf("exit code %d, %q, %q", exitCode, stdout, stderr)
	}
}
