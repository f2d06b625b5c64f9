package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestContainerStartsOnlyInItsGroup(t *testing.T) {
	const prefix = "find container abc in group dra-numa.3 for claim team/job: "
	for groups, want := range map[string]string{
		"res:dra-numa.3\nmon:/\n": "",
		"res:/\nmon:/\n":          prefix + "the OCI runtime has not put it there: it must know intelRdt.closID, as runc 1.1.9 and crun 1.10 do",
		"res:dra-numa.4\nmon:/\n": prefix + "it is in group dra-numa.4: a container can have the ways of only one mixed claim",
		"res:\nmon:\n":            prefix + "resctrl is not mounted",
		"":                        prefix + "the kernel does not say which group a process is in",
		"garbage\n":               prefix + `no line res: in "garbage\n"`,
	} {
		host, records := fakeHost(t), filepath.Join(t.TempDir(), "pins")
		if groups != "" {
			files.Write(t, host.proc+"/42/cpu_resctrl_groups", groups)
		}
		args := []string{"joined", "--uid=u1", "--claim=team/job", "--group=dra-numa.3", "--records=" + records}
		_, err := runWith(t.Context(), host, ociState, args...)
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: error %v, want %q", groups, err, want)
		}
		left, _ := filepath.Glob(records + "/*.refused")
		if (len(left) == 1) != (want != "") {
			t.Errorf("%q: refusals %q", groups, left)
		}
	}
}

func TestGroupIsNotCheckedWhilePinningIsStopped(t *testing.T) {
	dir := t.TempDir()
	files.Write(t, dir+"/stop-pinning", "")
	args := []string{"joined", "--uid=u1", "--claim=team/job", "--group=dra-numa.3", "--records=" + dir + "/pins", "--lock=" + dir + "/lock"}
	for _, state := range []string{ociState, "garbage"} { // nothing may stop a container now
		if _, err := runWith(t.Context(), fakeHost(t), state, args...); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(dir + "/pins")
	if err != nil || len(left) != 1 || left[0].Name() != "abc.json" {
		t.Errorf("it leaves %v, %v, want the record that the container uses the claim", left, err)
	}
}

func TestNonsenseOfJoinedIsOneLine(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"joined", "--uid is missing"},
		{"joined --uid=u", "--claim is missing"},
		{"joined --uid=u --claim=a/b", "--group is missing"},
		{"joined --uid=u --claim=a/b --group=g more", `unexpected argument "more", numa-pin joined takes only flags`},
	} {
		if _, err := runWith(t.Context(), host{}, "", strings.Fields(row.args)...); err == nil || err.Error() != row.want {
			t.Errorf("%s: error %v, want %s", row.args, err, row.want)
		}
	}
}
