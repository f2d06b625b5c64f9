package cli

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestConfinedNamesTheSELinuxTypeThatMayForbid(t *testing.T) {
	refused := &fs.PathError{Op: "mkdir", Path: "/host/cgroup/probe", Err: fs.ErrPermission}
	for context, want := range map[string]string{
		"system_u:system_r:container_t:s0:c12,c34\x00": "mkdir /host/cgroup/probe: permission denied (SELinux may be why: this process has the SELinux type container_t, ",
		"system_u:system_r:container_t\n":              "container_t",
	} {
		err := confined(refused, context)
		if !strings.Contains(err.Error(), want) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("context %q: %v, want the error with %q", context, err, want)
		}
	}
	for _, context := range []string{
		"", "unconfined\n", "cri-containerd.apparmor.d (enforce)\n", "system_u:system_r:spc_t:s0\x00",
		"unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\x00", "kernel\x00",
	} {
		if err := confined(refused, context); err.Error() != refused.Error() {
			t.Errorf("context %q: %v, want %v", context, err, refused)
		}
	}
	other := errors.New("another error")
	if err := Confined(other); err.Error() != other.Error() {
		t.Errorf("%v, want %v", err, other)
	}
}
