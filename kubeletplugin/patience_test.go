package kubeletplugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// busyHost is a host with one function, whose driver does not release it until it is let.
func busyHost(t *testing.T) (host *binding.Host, address string, let func()) {
	t.Helper()
	address = "0001:21:00.0"
	machine := fake.Presets()[0].Machine
	machine.PCI = []fake.Function{fake.NVMe(address, 0, 0)}
	machine.Drivers, machine.IOMMU = []string{"vfio-pci"}, true
	kernel, err := fake.NewHost(machine)
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
