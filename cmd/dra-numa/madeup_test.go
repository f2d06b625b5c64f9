package main

import (
	"context"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

func TestMadeUpMachine(t *testing.T) {
	flags, _ := fakeMachine(t)
	text, err := printedConfig(t, append(flags, "--made-up-machine=intel-2s")...)
	if err != nil || !strings.Contains(text, "\nexclusivity: none\n") || !strings.Contains(text, "\nreservedCPUs: 0,48\n") {
		t.Errorf("%v, configuration\n%s", err, text)
	}

	o, err := configured(t, append(flags, "--made-up-machine=intel-2s", "--kubelet-config=/no/such")...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := readNode(o)
	if err != nil {
		t.Fatal(err)
	}
	if n.config.BootID != testBoot || n.machine.Online.Size() != 96 || !n.config.Hook.None || !n.config.MadeUp {
		t.Errorf("boot %q, %d CPUs, hook %+v, made up %t; want the boot of the host, 96 CPUs and no hook", n.config.BootID, n.machine.Online.Size(), n.config.Hook, n.config.MadeUp)
	}
	n.config.Exclusivity = driver.ExclusivityNone
	for _, device := range driver.Devices(n.machine, n.config, nil) {
		if value := device.Attributes["madeUp"].BoolValue; value == nil || !*value {
			t.Errorf("zone %s does not say that it is made up", device.Name)
		}
	}
	if err := o.rehearse(context.Background(), n); err != nil {
		t.Errorf("prepare a claim: %v", err)
	}
}

func TestMadeUpMachineIsRefused(t *testing.T) {
	flags, _ := fakeMachine(t)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--made-up-machine=pdp-11"}, `--made-up-machine "pdp-11": there is no such machine, allowed are rig, intel-2s, `},
		{[]string{"--made-up-machine=rig", "--exclusivity=kernel"}, `--made-up-machine "rig": exclusivity kernel needs a real machine`},
		{[]string{"--made-up-machine=rig", "--config=" + configFile(t, "devices: {presets: [gpu]}\n")}, `--made-up-machine "rig": devices needs a real machine`},
		{[]string{"--made-up-machine=rig", "--config=" + configFile(t, "performance: {allow: class}\n")}, `--made-up-machine "rig": performance needs a real machine`},
		{[]string{"--made-up-machine=rig", "--config=" + configFile(t, "cache: {os: {ways: 1}, guaranteed: {ways: 4}}\n")}, `--made-up-machine "rig": cache needs a real machine`},
	} {
		if _, err := printedConfig(t, append(flags[:len(flags):len(flags)], row.args...)...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: error %v, want %s", row.args, err, row.want)
		}
	}
}
