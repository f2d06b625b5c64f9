package kubeletplugin

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

const physicalFunction, virtualFunction = "0000:3b:00.0", "0000:3b:00.1"

// cardMachine has a network card with one virtual function.
func cardMachine() numa.Machine {
	return numa.Machine{PCI: []numa.PCIFunction{{Address: physicalFunction, VirtFns: []string{virtualFunction}}, {Address: virtualFunction, PhysFn: physicalFunction}}}
}

// cardDevices are those of cardMachine, as far as publishing looks at them.
func cardDevices() []resourceapi.Device {
	physical, virtual := physicalFunction, virtualFunction
	return []resourceapi.Device{
		{Name: "nic-1", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			deviceclasses.AttributePCIBusID: {StringValue: &virtual}, deviceclasses.AttributePhysicalFunction: {StringValue: &physical},
		}},
		{Name: "nic-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{deviceclasses.AttributePCIBusID: {StringValue: &physical}}},
	}
}

func withoutConflictsOfNode(devices []resourceapi.Device, others map[string]string) ([]resourceapi.Device, []driver.Conflict) {
	return attached.WithoutConflicts(cardMachine(), devices, others)
}

// sliceOfFunction is one of another driver with a device at an address.
func sliceOfFunction(name, address string) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: "dra.net", NodeName: new(node), Pool: resourceapi.ResourcePool{Name: "net", ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{Name: "theirs", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				deviceclasses.AttributePCIBusID: {StringValue: &address},
			}}},
		},
	}
}

// names are the devices of the own slices that the API server has.
func names(p publishing) string {
	var names []string
	for _, slice := range p.slices.own() {
		for _, device := range slice.Spec.Devices {
			names = append(names, device.Name)
		}
	}
	return strings.Join(names, " ")
}

func becomes(t *testing.T, p publishing, want string) {
	t.Helper()
	if !until(10*time.Second, func() bool { return names(p) == want }) {
		t.Fatalf("published are %q, want %q", names(p), want)
	}
	eventually(t, p, http.StatusOK, "", 10*time.Second)
}

// A kubelet that starts deletes the slices of all drivers, and this one may be
// the first to publish again.
func TestWhatAnotherDriverPublishesStaysLeftOutWhileItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		client := c.ResourceV1().ResourceSlices()
		p := startPublishing(t, c)
		p.set(cardDevices())
		becomes(t, p, "nic-1 nic-0")
		for _, step := range []struct {
			change func() error
			want   string
		}{
			{func() error {
				_, err := client.Create(t.Context(), sliceOfFunction("other", virtualFunction), metav1.CreateOptions{})
				return err
			}, ""},
			{func() error { return client.Delete(t.Context(), "other", metav1.DeleteOptions{}) }, ""},
			{func() error {
				_, err := client.Create(t.Context(), sliceOfFunction("another", "0000:5e:00.0"), metav1.CreateOptions{})
				return err
			}, "nic-1 nic-0"},
		} {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			if step.want == "" {
				time.Sleep(500 * time.Millisecond) // long enough for the publisher to be wrong
			}
			becomes(t, p, step.want)
		}
		events, err := c.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, event := range events.Items {
			if strings.HasPrefix(event.Reason, "NUMADevice") {
				told = append(told, event.Type+" "+event.Reason+" "+event.Note)
			}
		}
		want := []string{
			"Warning NUMADeviceLeftOut device nic-1 is left out: driver dra.net publishes PCI function 0000:3b:00.1; exclude one of them; " +
				"device nic-0 is left out: driver dra.net publishes PCI function 0000:3b:00.1; exclude one of them",
			"Normal NUMADevicesPublished No device is left out any longer",
		}
		if strings.Join(told, "\n") != strings.Join(want, "\n") {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	})
}

// What proves nothing is told, and takes nothing from anybody.
func TestSuspectsAreToldAndNothingIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		shared := otherSlice("cpu.example.com", "cpu.example.com/cpu")
		shared.Spec.Devices[0].AllowMultipleAllocations = new(true)
		if err := c.Tracker().Add(shared); err != nil {
			t.Fatal(err)
		}
		p := startReady(t, c)
		if names(p) != "numa-0" {
			t.Errorf("published are %q", names(p))
		}
		waitForEvents(t, c, 1) // before the slice is gone
		if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), shared.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		told := waitForEvents(t, c, 2)
		want := []string{
			`Warning NUMACPUDriverSuspected driver "cpu.example.com" publishes a capacity of CPUs that claims share: if it gives containers CPUs of this node, ` +
				"claims of both drivers can get the same ones. Then name it in otherCPUDrivers, or reserve its CPUs",
			"Normal NUMACPUDriverGone No other driver is suspected of giving out CPUs of this node any longer",
		}
		if !slices.Equal(told, want) {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	})
}
