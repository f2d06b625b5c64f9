package kernel

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestLeftoversAreTheDrivers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"var/lib/kubelet/plugins/dra.numa/checkpoint.json":      "{}",
		"var/lib/kubelet/plugins/gpu.example.com/dra.sock":      "",
		"var/lib/kubelet/plugins_registry/dra.numa-reg.sock":    "",
		"cdi/dra.numa-claim.json":                               "{}",
		"cdi/gpu.example.com.json":                              "{}",
		"sys/fs/cgroup/kubepods/pod1/cpuset.cpus.partition":     "member\n",
		"sys/fs/cgroup/kubepods/pod2/cpuset.cpus.partition":     "root\n",
		"sys/fs/cgroup/kubepods/pod3/cpuset.cpus.partition":     "isolated invalid (Parent is not a partition root)\n",
		"sys/fs/cgroup/dra-numa-reclaim/cpuset.cpus.partition":  "member\n",
		"sys/fs/cgroup/kubepods/pod1/cpuset.cpus.effective":     "0-3\n",
		"var/lib/kubelet/pods/1/volumes/dra.numa-elsewhere/key": "",
	} {
		files.Write(t, filepath.Join(dir, name), text)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", leftoversScript, "sh", dir, filepath.Join(dir, "cdi")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.ReplaceAll(strings.TrimSpace(string(out)), dir+"/", ""), "\n")
	slices.Sort(got)
	want := []string{
		"cdi/dra.numa-claim.json",
		"sys/fs/cgroup/dra-numa-reclaim",
		"sys/fs/cgroup/kubepods/pod2/cpuset.cpus.partition:root",
		"sys/fs/cgroup/kubepods/pod3/cpuset.cpus.partition:isolated invalid (Parent is not a partition root)",
		"var/lib/kubelet/plugins/dra.numa",
		"var/lib/kubelet/plugins_registry/dra.numa-reg.sock",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
