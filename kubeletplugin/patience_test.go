package kubeletplugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	clientfake "k8s.io/client-go/kubernetes/fake"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// busyHost is a host with one function, whose driver does not release it until it is let.
func busyHost(t *testing.T) (host *binding.Host, address string, let func()) {
	t.Helper()
	address = "0001:21:00.0"
	machine := fake.Presets()[0].Machine
	machine.PCI = []fake.Function{fake.NVMe(address, 0, 0)}
	machine.Drivers, machine.IOMMU = []string{"vfio-pci"}, true
	kernel, err := sysfs.NewHost(machine)
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	host = binding.New(kernel, func(name, text string) error {
		if strings.HasSuffix(name, "/unbind") {
			<-release
		}
		return kernel.Write(name, text)
	})
	return host, address, func() { close(release) }
}

// Only the kernel driver of a function is given up, and only after a while.
func TestReleasesThatFailForLong(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newReleases()
	r.now = func() time.Time { return now }
	stuck := fmt.Errorf("restore: %w", &driver.NotRestoredError{})
	for i, row := range []struct {
		after time.Duration
		err   error
		want  bool
	}{
		{0, stuck, false},
		{releasePatience - time.Second, stuck, false},
		{time.Second, stuck, true},
		{0, nil, false},
		{0, stuck, false},
		{releasePatience, errors.New("the disk is full"), false},
		{0, stuck, false},
	} {
		now = now.Add(row.after)
		if got := r.giveUp("uid", row.err); got != row.want {
			t.Errorf("step %d, %v: gives up: %t, want %t", i, row.err, got, row.want)
		}
	}
}

func TestCallsWaitForTheKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, address, let := busyHost(t)
		tries := 0
		bind := func() error {
			tries++
			return host.Bind(address, "vfio-pci")
		}
		begin := time.Now()
		var busy *driver.BusyError
		if err := withPatience(t.Context(), bind); !errors.As(err, &busy) || time.Since(begin) < hostPatience || tries != 1 {
			t.Errorf("error %v after %s and %d tries, want that the kernel is busy after %s", err, time.Since(begin), tries, hostPatience)
		}
		go func() {
			time.Sleep(10 * time.Second)
			let()
		}()
		if err := withPatience(t.Context(), bind); err != nil || tries != 3 {
			t.Errorf("error %v after %d tries, want none after another two", err, tries)
		}
	})
}

// A pod that was deleted by force is unprepared while its containers run. The kubelet gets an
// answer, and the claim keeps what it has until they have ended.
func TestClaimsOfRunningContainersAreLeftForLater(t *testing.T) {
	for name, ends := range map[string]time.Duration{"soon": time.Second, "late": time.Minute} {
		config := testConfig()
		var ended time.Time
		config.Containers = func() (driver.Containers, error) {
			return driver.Containers{Pods: map[types.UID]bool{"pod-1": time.Now().Before(ended)}, AllPods: true}, nil
		}
		d := recoveredWith(t, config)
		synctest.Test(t, func(t *testing.T) {
			ended = time.Now().Add(ends)
			claim := allocated("a", "uid-a")
			claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod", UID: "pod-1"}}
			if _, _, err := d.Prepare(claim, nil); err != nil {
				t.Fatal(err)
			}
			s := &claimServer{Plugin: &Plugin{driver: d, statuses: newClaimStatuses(clientfake.NewClientset(), config)}, releases: newReleases()}
			defer s.statuses.queue.ShutDown()
			began := time.Now()
			errs, err := s.UnprepareResourceClaims(t.Context(), []helper.NamespacedObject{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}, UID: "uid-a"}})
			took := time.Since(began)
			if err != nil || errs["uid-a"] != nil || took > containerPatience {
				t.Errorf("%s: errors %v, %v after %s, want none after at most %s", name, errs, err, took, containerPatience)
			}
			grant, held := d.Grant("uid-a")
			if held != (name == "late") || held && !grant.Unprepared {
				t.Errorf("%s: held %t, %+v", name, held, grant)
			}
			time.Sleep(ends)
			if _, err := d.Observe(nil); err != nil {
				t.Error(err)
			}
			if _, held := d.Grant("uid-a"); held {
				t.Errorf("%s: still held after the containers have ended", name)
			}
		})
	}
}
