package kubeletplugin

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// functionGrant is that of statusGrant, with a card and a drive.
func functionGrant() ledger.Grant {
	grant := statusGrant(cpuset.New(4))
	grant.Shares = append(
		grant.Shares,
		ledger.Share{Request: "card", Device: "nic-0000-3b-00-0", Kind: &ledger.FunctionShare{
			Address: "0000:3b:00.0", Kind: deviceclasses.KindNIC, Interfaces: []string{"ens1", "ens1d1"},
		}},
		ledger.Share{Request: "drive", Device: "nvme-0000-5e-00-0", Kind: &ledger.FunctionShare{
			Address: "0000:5e:00.0", Kind: deviceclasses.KindNVMe, Nodes: []devnode.Node{{Path: "/dev/nvme0", Type: "c", Major: 240}, {Path: "/dev/nvme0n1", Type: "b", Major: 259}},
		}},
		ledger.Share{Request: "gpu", Device: "gpu-0000-17-00-0", Kind: &ledger.FunctionShare{
			Address: "0000:17:00.0", Kind: deviceclasses.KindGPU, CDIDevice: "nvidia.com/gpu=0",
		}},
		ledger.Share{Request: "guest", Device: "nvme-0000-5f-00-0", Kind: &ledger.FunctionShare{
			Address: "0000:5f:00.0", Kind: deviceclasses.KindNVMe, Nodes: []devnode.Node{{Path: "/dev/vfio/7", Type: "c", Major: 243}}, Driver: "vfio-pci", Before: binding.State{Driver: "nvme"},
		}},
	)
	return grant
}

func TestStatusSaysWhatAClaimHasOfAFunction(t *testing.T) {
	statuses := openStatuses(t, fake.NewClientset())
	devices := statuses.devices(&claimStatus{grant: functionGrant()})
	want := map[string]string{
		"nic-0000-3b-00-0":  `{"pci":"0000:3b:00.0","interfaces":["ens1","ens1d1"]}`,
		"nvme-0000-5e-00-0": `{"pci":"0000:5e:00.0","nodes":["/dev/nvme0","/dev/nvme0n1"]}`,
		"gpu-0000-17-00-0":  `{"pci":"0000:17:00.0","cdiDevice":"nvidia.com/gpu=0"}`,
		"nvme-0000-5f-00-0": `{"pci":"0000:5f:00.0","nodes":["/dev/vfio/7"],"driver":"vfio-pci"}`,
	}
	for _, device := range devices {
		text, isFunction := want[device.Device]
		delete(want, device.Device)
		if exclusive := findCondition(device, deviceclasses.ConditionExclusive); isFunction == (exclusive != nil) || findCondition(device, deviceclasses.ConditionReady) == nil {
			t.Errorf("%s has conditions %+v", device.Device, device.Conditions)
		}
		if isFunction && string(device.Data.Raw) != text {
			t.Errorf("%s has data %s, want %s", device.Device, device.Data.Raw, text)
		}
		var network *resourceapi.NetworkDeviceData
		if device.Device == "nic-0000-3b-00-0" {
			network = &resourceapi.NetworkDeviceData{InterfaceName: "ens1"}
		}
		if diff := cmp.Diff(network, device.NetworkData); diff != "" {
			t.Errorf("network data of %s (-want +got):\n%s", device.Device, diff)
		}
	}
	if len(want) > 0 {
		t.Errorf("no status of %v", want)
	}
	if !hasStatuses(devices, devices) {
		t.Error("a claim that says so already is written again")
	}
	for _, change := range []func(*ledger.FunctionShare){
		func(f *ledger.FunctionShare) { f.Nodes = nil },
		func(f *ledger.FunctionShare) { f.Interfaces = []string{"ens2"} },
	} {
		changed := functionGrant()
		for i := range changed.Shares {
			if function := changed.Shares[i].Function(); function != nil {
				change(function)
			}
		}
		if hasStatuses(devices, statuses.devices(&claimStatus{grant: changed})) {
			t.Errorf("a claim that has something else is not written: %+v", changed.Shares)
		}
	}
}

func TestMetadataHasTheInterfaceOfACard(t *testing.T) {
	grant := functionGrant()
	var prepared []driver.PreparedDevice
	for i := range grant.Shares {
		prepared = append(prepared, driver.PreparedDevice{Device: grant.Shares[i].Device, Share: &grant.Shares[i]})
	}
	prepared = append(prepared, driver.PreparedDevice{Device: "seen"}) // by admin access
	for _, device := range kubeletDevices(prepared) {
		text, err := json.Marshal(device.Metadata.NetworkData)
		want := "null"
		if device.DeviceName == "nic-0000-3b-00-0" {
			want = `{"interfaceName":"ens1"}`
		}
		if err != nil || string(text) != want {
			t.Errorf("%s has network data %s, %v, want %s", device.DeviceName, text, err, want)
		}
	}
}
