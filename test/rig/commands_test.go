package main

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/guest"
)

func TestOptionsOfUp(t *testing.T) {
	for _, row := range []struct {
		args []string
		want guest.Init
	}{
		{nil, guest.Busybox},
		{[]string{"-init", "busybox"}, guest.Busybox},
		{[]string{"-init", "systemd", "-kernel", "7.2"}, guest.Systemd},
	} {
		o, err := parseOptions("up", row.args)
		if err != nil || o.init != row.want {
			t.Errorf("up %q: init %q, %v; want %q", row.args, o.init, err, row.want)
		}
	}
	for _, init := range []string{"", "openrc", "Systemd", "systemd,busybox"} {
		if _, err := parseOptions("up", []string{"-init", init}); err == nil || !strings.Contains(err.Error(), "allowed are busybox, systemd") {
			t.Errorf("up -init %q: %v, want an error that names what is allowed", init, err)
		}
	}
	for _, version := range []string{"", "1.35", "v1.36", "1.36.3"} {
		if _, err := parseOptions("up", []string{"-kubernetes", version}); err == nil || !strings.Contains(err.Error(), "allowed are 1.36, 1.37") {
			t.Errorf("up -kubernetes %q: %v, want an error that names what is allowed", version, err)
		}
	}
	if _, err := parseOptions("exec", []string{"-init", "systemd", "--", "true"}); err == nil {
		t.Error("exec takes -init, which is of up only")
	}
}
