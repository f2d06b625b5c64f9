package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// reserved is the claim, reserved for these pods.
func reserved(claim *resourceapi.ResourceClaim, pods ...types.UID) *resourceapi.ResourceClaim {
	claim.Status.ReservedFor = nil
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: string(pod), UID: pod})
	}
	return claim
}

// watched is the configuration of a node on which these containers run.
func watched(running *Containers) Config {
	config := testConfig()
	config.Containers = func() (Containers, error) { return *running, nil }
	return config
}

// A pod that was deleted by force is unprepared while it runs. What it holds must be in no
// other claim, whatever it is, also after a restart of the daemon and without the checkpoint.
func TestGrantOfRunningContainersIsNotReleased(t *testing.T) {
	memory := counted(result("r", "numa-1", 0))
	for name, wanted := range map[string]*resourceapi.ResourceClaim{
		"cpus":     claim("a", result("r", "numa-1", 2)),
		"memory":   claim("a", memory),
		"mixed":    configured(claim("a", result("r", "numa-1", 2)), fromClaim(`"mixed": true`, "r")),
		"function": claim("a", functionResult("r", driveA)),
	} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk(t)
			if name == "function" {
				disk = pciDisk(t)
			}
			running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
			driver := disk.openWith(watched(running))
			mustPrepare(t, driver, reserved(wanted, "pod-1"))
			before := grantOf(driver, "uid-a")

			var inUse *InUseError
			if err := driver.Unprepare("uid-a"); !errors.As(err, &inUse) || !strings.Contains(err.Error(), "pod-1") {
				t.Fatalf("unprepare: error %v, want one about pod-1", err)
			}
			if err := driver.Abandon("uid-a"); err != nil {
				t.Fatal(err)
			}
			for _, lose := range []string{"", ledger.CheckpointName} { // the second time, the CDI spec says it
				if lose != "" {
					disk.remove(lose)
				}
				driver = disk.openWith(watched(running))
				report, err := driver.Observe(nil)
				if err != nil || len(report) != 1 || report[0].Outcome != Waiting || !strings.Contains(report[0].Why, "pod-1") {
					t.Errorf("report %s, %v, want one grant that waits for pod-1", lines(report), err)
				}
				if got := grantOf(driver, "uid-a"); !got.Unprepared || !before.Shares[0].Equal(got.Shares[0]) {
					t.Errorf("grant %+v, want %+v, unprepared", got, before)
				}
				assertConsistent(t, disk, driver)
			}
			running.Pods["pod-1"] = false
			if report, err := driver.Observe(nil); err != nil || len(report) != 1 || report[0].Outcome != Released {
				t.Errorf("report %s, %v, want a release", lines(report), err)
			}
			if len(driver.Grants()) > 0 {
				t.Errorf("grants %v, want none", driver.Grants())
			}
			assertConsistent(t, disk, driver)
		})
	}
}

// The same claim may be prepared again, for another pod: it takes up what it had.
func TestUnpreparedGrantIsTakenUpAgain(t *testing.T) {
	disk := newDisk(t)
	running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
	driver := disk.openWith(watched(running))
	wanted := claim("a", result("r", "numa-1", 2))
	mustPrepare(t, driver, reserved(wanted, "pod-1"))
	if err := driver.Abandon("uid-a"); err != nil {
		t.Fatal(err)
	}
	before := grantOf(driver, "uid-a")
	mustPrepare(t, driver, reserved(wanted, "pod-2"))
	after := grantOf(driver, "uid-a")
	if after.Unprepared || after.CPUs() != before.CPUs() || len(after.Pods) != 2 {
		t.Errorf("grant %+v, want that of %+v for both pods", after, before)
	}
	running.Pods["pod-1"] = false
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-a").Pods; len(got) != 1 || got[0] != "pod-2" {
		t.Errorf("pods %s, want pod-2: the other has ended", got)
	}

	// Allocated anew, it gets nothing before the containers of the first allocation have ended.
	running.Pods["pod-2"] = true
	anew := reserved(claim("a", result("r", "numa-0", 2)), "pod-3")
	if _, _, err := driver.Prepare(anew, nil); err == nil || !strings.Contains(err.Error(), "allocated again") || !strings.Contains(err.Error(), "pod-2") {
		t.Errorf("allocated anew: error %v, want one about pod-2", err)
	}
	if got := grantOf(driver, "uid-a"); got.CPUs() != before.CPUs() {
		t.Errorf("grant %s, want %s", got, before)
	}
	running.Pods["pod-2"] = false
	mustPrepare(t, driver, anew)
}

// What is not known to have ended may run.
func TestUnknownContainersCountAsRunning(t *testing.T) {
	running := &Containers{AllPods: true}
	driver := newDisk(t).openWith(watched(running))
	mustPrepare(t, driver, reserved(claim("a", result("r", "numa-1", 2)), "pod-1"))
	for name, row := range map[string]struct {
		running Containers
		want    string
	}{
		"own pod not found":         {Containers{}, "it is unknown whether containers of pod pod-1 run, because the cgroup of the daemon's own pod was not found"},
		"pods cannot be read":       {Containers{Unseen: "cgroups cannot be read: open x"}, "it is unknown whether containers of pod pod-1 run, because cgroups cannot be read: open x"},
		"a pod that came later":     {Containers{AllPods: true, Recorded: map[types.UID]string{"uid-a": "kubepods/x/y"}}, "containers in cgroup kubepods/x/y use it"},
		"cgroups cannot be read":    {Containers{}, "it is unknown whether its containers run: no cgroups"},
		"pod without processes":     {Containers{Pods: map[types.UID]bool{"pod-1": false}}, ""},
		"pod that has no cgroup":    {Containers{AllPods: true}, ""},
		"another pod and own found": {Containers{Pods: map[types.UID]bool{"pod-2": true}, AllPods: true}, ""},
	} {
		driver.config.Containers = func() (Containers, error) {
			if strings.HasPrefix(name, "cgroups") {
				return Containers{}, errors.New("no cgroups")
			}
			return row.running, nil
		}
		if got := driver.config.usedBy(grantOf(driver, "uid-a")); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// No container survives a boot, and a pod of the API server may have the same UID after it.
func TestPodsOfAnotherBootHaveEnded(t *testing.T) {
	disk := newDisk(t)
	running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
	driver := disk.openWith(watched(running))
	mustPrepare(t, driver, reserved(claim("a", result("r", "numa-1", 2)), "pod-1"))
	if err := driver.Abandon("uid-a"); err != nil {
		t.Fatal(err)
	}
	ofOldBoot := disk.files()[ledger.CheckpointName]
	config := watched(running)
	config.BootID = "boot-2"
	if driver = disk.openWith(config); len(driver.Grants()) > 0 {
		t.Errorf("grants %v, want none", driver.Grants())
	}
	// The CDI specs are of this boot, and the checkpoint is an old one that was put back.
	mustPrepare(t, driver, reserved(claim("b", result("r", "numa-0", 2)), "pod-1"))
	disk.write(ledger.CheckpointName, ofOldBoot)
	if driver = disk.openWith(config); len(grantOf(driver, "uid-b").Pods) != 1 {
		t.Errorf("grant %+v, want that its pod is known", grantOf(driver, "uid-b"))
	}
}

// The pod that waits for what an ended claim still has is told so.
func TestErrorsAndTaintsNameWhoStillUsesIt(t *testing.T) {
	disk := pciDisk(t)
	running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
	driver := disk.openWith(watched(running))
	drive := functionResult("drive", driveA)
	mustPrepare(t, driver, reserved(claim("a", result("r", "numa-1", 4), drive), "pod-1"))
	if err := driver.Abandon("uid-a"); err != nil {
		t.Fatal(err)
	}
	_, _, err := driver.Prepare(claim("b", result("r", "numa-1", 2)), nil)
	if !errors.Is(err, ErrNotEnough) || !strings.Contains(err.Error(), "are held by claim default/a until its containers have ended: the claim was unprepared") {
		t.Errorf("error %v, want one about claim a", err)
	}
	for _, device := range driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices {
		if device.Name == drive.Device && (len(device.Taints) != 1 || device.Taints[0].Value != deviceclasses.FaultInUse) {
			t.Errorf("taints %v, want %s", device.Taints, deviceclasses.FaultInUse)
		}
	}
}

// The scheduler gives away the memory of a claim that has ended while its containers use it.
func TestMemoryOfRunningContainersIsNotGiven(t *testing.T) {
	running := &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}
	driver := newDisk(t).openWith(watched(running))
	amount := zones.Zone{Nodes: []int{1}}.Amounts(driver.layout.machine, nil)[0]
	most := fmt.Sprintf("memory=%d", (amount.TotalBytes-amount.ReservedBytes)*2/3)
	mustPrepare(t, driver, reserved(claim("a", consuming(result("r", "numa-1", 0), most)), "pod-1"))
	mustPrepare(t, driver, claim("b", consuming(result("r", "numa-1", 0), most))) // the scheduler knows better
	if err := driver.Abandon("uid-a"); err != nil {
		t.Fatal(err)
	}
	late := claim("c", consuming(result("r", "numa-1", 0), most))
	if _, _, err := driver.Prepare(late, nil); err == nil || !strings.Contains(err.Error(), "claim default/a holds") {
		t.Errorf("error %v, want one about claim a", err)
	}
	mustPrepare(t, driver, claim("d", consuming(result("r", "numa-2", 0), "memory=1Mi")))
	running.Pods["pod-1"] = false
	if _, err := driver.Observe(nil); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, late)
}

// What is expected is what ResourceConfigForPod of the kubelet makes of such pods.
func TestLimitThatTheKubeletGivesAPod(t *testing.T) {
	limited := func(line string, limits ...string) *corev1.Pod {
		pod := podOf(line)
		var all []*corev1.Container
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				all = append(all, &list[i])
			}
		}
		for i, limit := range limits {
			if limit != "" {
				all[i].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
			}
		}
		return pod
	}
	overhead := limited("main:", "2")
	overhead.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	for _, row := range []struct {
		what string
		pod  *corev1.Pod
		want int64
	}{
		{"two containers", limited("main: main:", "2", "500m"), 2500},
		{"one without a limit", limited("main: main:", "2"), 0},
		{"none with a limit", limited("main:"), 0},
		{"a small init container", limited("init: main:", "1", "2"), 2000},
		{"a large init container", limited("init: main:", "4", "2"), 4000},
		{"an init container without a limit", limited("init: main:", "", "2"), 0},
		{"a sidecar", limited("side: main:", "500m", "2"), 2500},
		{"a sidecar before an init container", limited("side: init: main:", "500m", "4", "2"), 4500},
		{"overhead", overhead, 2250},
		{"more than any machine has", limited("main:", "5T"), 0},
	} {
		if got := milliLimit(row.pod); got != row.want {
			t.Errorf("%s: %d, want %d", row.what, got, row.want)
		}
	}
}
