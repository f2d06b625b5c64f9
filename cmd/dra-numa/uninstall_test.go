package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestUninstallIsRefusedWhilePodsUseClaims(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cpus"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Driver: driver.Name, Pool: "node-1"}},
	}}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "job"}}
	client := fake.NewClientset(claim, installedBy(byHelm))
	f := releaseFlags{namespace: "dra-numa", daemonSet: "dra-driver-numa"}
	var out strings.Builder
	err := uninstallCheck(t.Context(), client, f, &out)
	if want := "uninstall the driver: delete these pods first, which could not end without it: team/job has claim cpus on node node-1"; err == nil || err.Error() != want {
		t.Fatalf("error %v, want %q", err, want)
	}
	checkRule(t, client, false)
	go func() { // the pod ends while the check waits
		time.Sleep(releasePeriod + releasePeriod/2)
		claim.Status.ReservedFor = nil
		_, _ = client.ResourceV1().ResourceClaims("team").UpdateStatus(context.Background(), claim, metav1.UpdateOptions{}) //nolint:usetesting // the test waits for it
	}()
	f.timeout = time.Minute
	if err := uninstallCheck(t.Context(), client, f, &out); err != nil || out.String() != "No pod uses a claim of the driver.\n" {
		t.Errorf("%q, error %v", out.String(), err)
	}
	checkRule(t, client, true)
	if err := uninstallCheck(t.Context(), client, f, &out); err != nil { // again, after helm was killed
		t.Error(err)
	}
}

// checkRule checks whether the rule exists that has no claim allocated.
func checkRule(t *testing.T, client kubernetes.Interface, want bool) {
	t.Helper()
	rule, err := client.ResourceV1().DeviceTaintRules().Get(t.Context(), uninstallRule, metav1.GetOptions{})
	switch {
	case !want && !apierrors.IsNotFound(err):
		t.Errorf("rule %v, error %v, want none", rule, err)
	case want && (err != nil || *rule.Spec.DeviceSelector.Driver != driver.Name || rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNoSchedule):
		t.Errorf("rule %v, error %v", rule, err)
	}
}

func TestUninstallCheckWithoutTaintRules(t *testing.T) {
	client := fake.NewClientset(installedBy(byHelm))
	client.PrependReactor("*", "devicetaintrules", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(resourceapi.Resource("devicetaintrules"), "")
	})
	var out strings.Builder
	if err := uninstallCheck(t.Context(), client, releaseFlags{namespace: "dra-numa", daemonSet: "dra-driver-numa"}, &out); err != nil || !strings.Contains(out.String(), "serves no DeviceTaintRules") {
		t.Errorf("%q, error %v", out.String(), err)
	}
}

// Helm has given up: the rule may not stay, or nothing is scheduled any more.
func TestInterruptedUninstallCheckLeavesNoRule(t *testing.T) {
	client := fake.NewClientset(installedBy(byHelm))
	ctx, cancel := context.WithCancel(t.Context())
	client.PrependReactor("create", "devicetaintrules", func(clienttesting.Action) (bool, runtime.Object, error) { cancel(); return false, nil, nil })
	if err := uninstallCheck(ctx, client, releaseFlags{namespace: "dra-numa", daemonSet: "dra-driver-numa"}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	checkRule(t, client, false)
}

func TestUninstallFinishesWhenAllNodesAreClean(t *testing.T) {
	cleaners := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dra-numa", Name: "cleaners", Generation: 1},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, NumberReady: 1},
	}
	dirty := daemonPod("a", "n1", corev1.ConditionFalse)
	other := nodeSlice("n3")
	other.Spec.Driver = "other"
	rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: uninstallRule}}
	client := fake.NewClientset(cleaners, dirty, daemonPod("b", "n2", corev1.ConditionTrue), nodeSlice("n1"), other, rule)
	f := releaseFlags{namespace: "dra-numa", selector: "app.kubernetes.io/component=daemon", daemonSet: "dra-driver-numa", cleaner: "cleaners"}
	var out strings.Builder
	err := uninstallFinish(t.Context(), client, f, &out)
	if want := "clean the nodes: node n1 is not clean; node n1: fake logs"; err == nil || err.Error() != want {
		t.Fatalf("error %v, want %q", err, want)
	}
	if all, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 2 {
		t.Fatalf("slices are deleted before the nodes are clean: %v, %v", all, err)
	}
	checkRule(t, client, false) // who installs again gets claims
	cleaners.Status.NumberReady = 2
	if _, err := client.AppsV1().DaemonSets("dra-numa").UpdateStatus(t.Context(), cleaners, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := uninstallFinish(t.Context(), client, f, &out); err != nil || out.String() != "Nothing of the driver is left on the 2 nodes where its pods can run. Deleted 1 ResourceSlices.\n" {
		t.Fatalf("%q, error %v", out.String(), err)
	}
	all, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 || all.Items[0].Spec.Driver != "other" {
		t.Errorf("left are %v, error %v", all, err)
	}
}

// A cleaner that the DaemonSet of the daemon outlives does nothing: an administrator may
// have applied all objects of the chart, hooks included.
func TestInstalledDriverStays(t *testing.T) {
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "dra-numa", Name: "dra-driver-numa"}}
	f := releaseFlags{namespace: "dra-numa", daemonSet: "dra-driver-numa"}
	for name, row := range map[string]struct {
		client *fake.Clientset
		want   bool
	}{
		"installed": {fake.NewClientset(daemons), true},
		"gone":      {fake.NewClientset(), false},
	} {
		if found, err := isInstalled(t.Context(), row.client, f); err != nil || found != row.want {
			t.Errorf("%s: %t, error %v", name, found, err)
		}
	}
	c, dir := usedNode(t)
	if err := c.look(t.Context(), func(context.Context) (bool, error) { return true, nil }); err == nil || err.Error() != "the driver is installed: nothing is removed" {
		t.Errorf("error %v", err)
	}
	if err := c.look(t.Context(), func(context.Context) (bool, error) { return false, errors.New("no answer") }); err == nil {
		t.Error("without an answer, files are removed")
	}
	if left := filesBelow(t, dir); len(left) < 8 {
		t.Errorf("left are only %q", left)
	}
}

// usedNode is a node on which the driver has run, without claims.
func usedNode(t *testing.T) (c *cleaner, dir string) {
	t.Helper()
	dir = t.TempDir()
	c = &cleaner{}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	c.flags(flags)
	if err := flags.Parse(nil); err != nil || c.machineRoot != "/" {
		t.Fatalf("the files of the machine are in %q, error %v", c.machineRoot, err)
	}
	err := flags.Parse([]string{
		"--gpu-reports=" + dir + "/run/dra-numa", "--kubelet-root=" + dir + "/kubelet", "--cdi-dir=" + dir + "/cdi",
		"--cgroup-root=" + dir + "/cgroup", "--machine-root=" + dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"kubelet/plugins/dra.numa/instance.lock", "kubelet/plugins/dra.numa/numa-pin.lock", "kubelet/plugins/dra.numa/pins/.keep",
		"kubelet/plugins/dra.numa/exclusivity", "kubelet/plugins/dra.numa/dra-device-metadata/team_cpus/cpus/metadata.json",
		"kubelet/plugins/dra.numa-hook/numa-pin", "kubelet/plugins_registry/dra.numa-reg.sock", "run/dra-numa/gpus.json",
		"cdi/dra.numa_metadata_uid_cpus.json", "cdi/dra.numa-rehearsal/checkpoint.json", "cgroup/cgroup.controllers",
		"kubelet/plugins/csi/csi.sock", "kubelet/plugins_registry/csi-reg.sock", "cdi/nvidia.json", // of others
	} {
		files.Write(t, filepath.Join(dir, name), "")
	}
	files.Write(t, dir+"/proc/sys/kernel/random/boot_id", "boot-2\n")
	return c, dir
}

func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && (!entry.IsDir() || strings.Contains(entry.Name(), "dra.numa")) {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Nothing of the driver stays, and everything of others does.
func TestCleanNodeHasNothingOfTheDriver(t *testing.T) {
	c, dir := usedNode(t)
	for range 2 { // a second look finds nothing
		if err := c.clean(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"cdi/nvidia.json", "cgroup/cgroup.controllers", "kubelet/plugins/csi/csi.sock",
		"kubelet/plugins_registry/csi-reg.sock", "proc/sys/kernel/random/boot_id",
	}
	if left := filesBelow(t, dir); !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// The folder of the hook is the operator's choice: other programs may be there.
func TestCleanNodeHasNoHookElsewhere(t *testing.T) {
	for _, others := range []bool{false, true} {
		c, dir := usedNode(t)
		c.hookDir = dir + "/opt/bin"
		files.Write(t, c.hook().Path, "")
		files.Write(t, c.hook().Path+".new", "half")
		if others {
			files.Write(t, c.hookDir+"/containerd", "")
			files.Write(t, c.hookDir+"/plugins/runc", "")
		}
		for range 2 {
			if err := c.clean(); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		if others {
			want = []string{"bin/containerd", "bin/plugins/runc"}
		}
		if left := filesBelow(t, dir+"/opt"); !slices.Equal(left, want) {
			t.Errorf("left are %q, want %q", left, want)
		}
		if _, err := os.Stat(c.hookDir); !others && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder of the hook is still there: %v", err)
		}
	}
}

// What the NodeConfig and claims have changed in this boot is taken back.
func TestCleanNodeHasWhatItHadFirst(t *testing.T) {
	const cpus = "/sys/devices/system/cpu/"
	for boot, want := range map[string]struct{ limit, uncore string }{"boot-2": {"n/a", "800000"}, "boot-1": {"500\n", "2000000\n"}} {
		c, dir := usedNode(t)
		c.performanceRoot = dir
		limit, die := dir+cpus+"cpu1/power/pm_qos_resume_latency_us", dir+cpus+"intel_uncore_frequency/package_00_die_01/"
		files.Write(t, limit, "500\n")
		for file, text := range map[string]string{"initial_min_freq_khz": "800000", "initial_max_freq_khz": "2400000", "max_freq_khz": "2400000", "min_freq_khz": "2000000"} {
			files.Write(t, die+file, text+"\n")
		}
		writeFirst(t, c, fmt.Sprintf(`{"bootID":%q,"uncore":[{"package":0,"die":1,"firstKHz":800000,"wantKHz":2000000,"gotKHz":2000000}],`+
			`"defaults":[{"asked":{"idleLatency":500},"idle":[{"cpus":"1","before":"n/a","want":"500"}],"applied":true}]}`, boot))
		if err := c.clean(); err != nil {
			t.Fatal(err)
		}
		if text := files.Read(t, limit); !strings.HasPrefix(text, want.limit) {
			t.Errorf("%s: the CPU has %q, want %q", boot, text, want.limit)
		}
		if text := files.Read(t, die+"min_freq_khz"); !strings.HasPrefix(text, want.uncore) {
			t.Errorf("%s: the die has %q, want %q", boot, text, want.uncore)
		}
	}
}

func writeFirst(t *testing.T, c *cleaner, state string) {
	t.Helper()
	files.Write(t, filepath.Join(c.pluginDir(), tuning.FirstName),
		fmt.Sprintf("{\"format\":\"dra.numa/first\",\"version\":1,\"sha256\":\"%x\",\"state\":%s}\n", sha256.Sum256([]byte(state)), state))
}

// A node that cannot get everything back is not clean, and says what to do.
func TestNodeWithoutItsFirstValuesIsNotClean(t *testing.T) {
	c, _ := usedNode(t)
	writeFirst(t, c, `{"bootID":"boot-2","uncore":[{"package":0,"die":1,"firstKHz":800000,"wantKHz":2000000,"gotKHz":2000000}]}`)
	if err := c.clean(); err == nil || err.Error() != "uncore of die 1 of package 0: its CPUs are offline" {
		t.Errorf("error %v", err)
	}
	files.Write(t, filepath.Join(c.pluginDir(), tuning.FirstName), "{")
	if err := c.clean(); err == nil || !strings.Contains(err.Error(), "first.json: damaged first values: ") || !strings.Contains(err.Error(), "; delete the file: ") {
		t.Errorf("error %v", err)
	}
}

// Somebody has deleted the folder of the driver: what says who holds what is lost, and what is
// in the kernel is not.
func TestNodeWhoseFolderIsGoneIsNotCleanBefore(t *testing.T) {
	c, dir := usedNode(t)
	if err := os.RemoveAll(c.pluginDir()); err != nil {
		t.Fatal(err)
	}
	const pod = "/cgroup/kubepods/burstable/pod1234/abc/"
	files.Write(t, dir+"/cgroup/dra-numa-reclaim/.keep", "")
	for _, above := range []string{"kubepods", "kubepods/burstable", "kubepods/burstable/pod1234"} {
		files.Write(t, dir+"/cgroup/"+above+"/cpuset.cpus.exclusive", "2-3\n")
		files.Write(t, dir+"/cgroup/"+above+"/cpuset.cpus.partition", "member\n")
	}
	for file, text := range map[string]string{"cpuset.cpus.partition": "root", "cpuset.cpus": "2-3", "cpuset.cpus.exclusive": "2-3"} {
		files.Write(t, dir+pod+file, text+"\n")
		files.Write(t, dir+"/cgroup/host.slice/"+file, text+"\n") // of another program
	}
	want := `cgroups ["kubepods/burstable/pod1234/abc"] of pods are partitions, and the folder of the driver is gone: delete their pods`
	if err := c.clean(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := os.RemoveAll(dir + "/cgroup/kubepods"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + "/cgroup/dra-numa-reclaim/.keep"); err != nil { // a cgroup without processes is removed as an empty folder is
		t.Fatal(err)
	}
	for range 2 {
		if err := c.clean(); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{dir + "/cgroup/dra-numa-reclaim", c.pluginDir()} {
			if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", gone, err)
			}
		}
	}
}

// While anything says that a claim is prepared, all files stay.
func TestNodeWithClaimsStaysAsItIs(t *testing.T) {
	const state = "kubelet/plugins/dra.numa/"
	for name, row := range map[string]struct{ file, text, want string }{
		"a claim on record": {
			state + ledger.CheckpointName, files.Read(t, "../../driver/ledger/testdata/checkpoint.json"),
			"claim default/a is prepared; claim default/b is prepared; claim default/c is prepared; claim default/d is prepared; claim default/e is prepared; claim default/f is prepared",
		},
		"a damaged checkpoint":         {state + ledger.CheckpointName, "{", "checkpoint.json: "},
		"a spec without a checkpoint":  {"cdi/dra.numa-claim_uid-1.json", "{}", `the checkpoint is missing, but there are CDI specs of claims: ["uid-1"]`},
		"a container of a claim":       {"cgroup/pods/a/cgroup.events", "populated 1\n", `containers of claims run in cgroups ["pods/a"]`},
		"no mount of the cgroup files": {"", "", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := usedNode(t)
			if row.file == "" {
				c.cgroupRoot = dir + "/missing"
			} else {
				files.Write(t, filepath.Join(dir, row.file), row.text)
			}
			if strings.HasPrefix(row.file, "cgroup/") {
				files.Write(t, filepath.Join(dir, state, "pins/a.json"), `{"format":"dra.numa/pins","version":1,"boot":"boot-2","cgroup":"pods/a","scope":"container",`+
					`"claims":[{"uid":"uid-b","name":"default/b","cpus":"2-3","mems":"0","partition":"root"}]}`+"\n")
			}
			before := filesBelow(t, dir)
			if err := c.clean(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
			if after := filesBelow(t, dir); !slices.Equal(before, after) {
				t.Errorf("left are %q of %q", after, before)
			}
		})
	}
}

// The files of a node are its daemon's until it has ended.
func TestNodeWithADaemonStaysAsItIs(t *testing.T) {
	c, dir := usedNode(t)
	unlock, err := lockInstance(t.Context(), c.pluginDir(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	before := filesBelow(t, dir)
	if err := c.clean(); err == nil || err.Error() != "the daemon of the node has not ended yet" {
		t.Errorf("error %v", err)
	}
	if after := filesBelow(t, dir); !slices.Equal(before, after) {
		t.Errorf("left are %q of %q", after, before)
	}
	unlock()
	if err := c.clean(); err != nil {
		t.Error(err)
	}
}

// The pod is ready when its node is clean, and says why it is not.
func TestCleanerSaysWhetherTheNodeIsClean(t *testing.T) {
	c, _ := usedNode(t)
	ask := func() (int, string) {
		recorder := httptest.NewRecorder()
		c.state.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return recorder.Code, recorder.Body.String()
	}
	if code, _ := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("before the first look: %d", code)
	}
	unlock, err := lockInstance(t.Context(), c.pluginDir(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	look := func() {
		ctx, cancel := context.WithCancel(t.Context())
		c.run(ctx, func(context.Context) (bool, error) { cancel(); return false, nil })
	}
	look()
	if code, text := ask(); code != http.StatusServiceUnavailable || text != "the daemon of the node has not ended yet\n" {
		t.Errorf("%d %q", code, text)
	}
	unlock()
	look()
	if code, text := ask(); code != http.StatusOK || text != "the node is clean\n" {
		t.Errorf("%d %q", code, text)
	}
}

func TestUninstallNamesItsCommands(t *testing.T) {
	for args, want := range map[string]string{
		"":            `unknown command "", allowed are check, node, finish`,
		"all":         `unknown command "all", allowed are check, node, finish`,
		"check":       "--namespace is missing",
		"node":        "--namespace is missing",
		"finish --xx": "flag provided but not defined: -xx",
		// The chart names them, because they depend on its values.
		"check --namespace=a":                            "--daemonset is missing",
		"node --namespace=a":                             "--daemonset is missing",
		"finish --namespace=a":                           "--daemonset is missing",
		"finish --namespace=a --daemonset=b":             "--cleaner is missing",
		"finish --namespace=a --daemonset=b --cleaner=c": "--selector is missing",
	} {
		if err := runUninstall(t.Context(), cli.Call{Args: strings.Fields(args), Stdout: io.Discard}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
