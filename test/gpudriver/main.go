// Command gpudriver is a small DRA driver next to ours, as a vendor of devices would have
// one: it publishes the PCI functions of one kernel driver as GPUs, with the standard
// attributes and nothing else, all of them made by the library of Kubernetes. It knows
// nothing of ours. What it prepares are the device nodes that the kernel has below a
// function.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

const (
	driverName = "gpu.example.com"
	cdiKind    = driverName + "/gpu"
	cdiDir     = "/var/run/cdi"
	plugins    = "/var/lib/kubelet/plugins"

	// functions is where the kernel has those of the driver: NVMe drives stand for
	// GPUs, which no emulated machine has.
	functions = "/sys/bus/pci/drivers/nvme"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("NODE_NAME")); err != nil {
		fmt.Fprintf(os.Stderr, "gpudriver: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, node string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data := filepath.Join(plugins, driverName)
	if err := os.MkdirAll(data, 0o750); err != nil {
		return err
	}
	devices, addresses, err := readDevices()
	if err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, &driver{addresses}, kubeletplugin.DriverName(driverName), kubeletplugin.NodeName(node),
		kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(data))
	if err != nil {
		return err
	}
	defer helper.Stop()
	err = helper.PublishResources(ctx, resourceslice.DriverResources{
		Pools: map[string]resourceslice.Pool{node: {Slices: []resourceslice.Slice{{Devices: devices}}}},
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// readDevices makes a device of each function of the kernel driver, and says which
// function that is.
func readDevices() (devices []resourceapi.Device, addresses map[string]string, err error) {
	found, err := filepath.Glob(functions + "/*:*")
	if err != nil {
		return nil, nil, err
	}
	addresses = make(map[string]string)
	for i, path := range found {
		address := filepath.Base(path)
		device := resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
		bus, err := deviceattribute.GetPCIBusIDAttribute(address)
		if err != nil {
			return nil, nil, err
		}
		root, err := deviceattribute.GetPCIeRootAttributeByPCIBusID(address)
		if err != nil {
			return nil, nil, err
		}
		numaNode, err := deviceattribute.GetNUMANodeAttributeByPCIBusID(address, deviceattribute.ScalarAttribute)
		if err != nil {
			return nil, nil, err
		}
		for _, attribute := range []deviceattribute.DeviceAttribute{bus, root, numaNode} {
			device.Attributes[attribute.Name] = attribute.Value
		}
		devices = append(devices, device)
		addresses[device.Name] = address
	}
	return devices, addresses, nil
}

// driver gives claims the device nodes of functions.
type driver struct {
	addresses map[string]string // of the functions, by the names of their devices
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult)
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) (devices []kubeletplugin.Device, err error) {
	spec := specs.Spec{Version: "0.6.0", Kind: cdiKind}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != driverName {
			continue
		}
		controllers, err := filepath.Glob(filepath.Join(functions, d.addresses[result.Device], "nvme", "nvme*"))
		if err != nil {
			return nil, err
		}
		if len(controllers) == 0 {
			return nil, fmt.Errorf("device %s: PCI function %q has no device node", result.Device, d.addresses[result.Device])
		}
		name := string(claim.UID) + "-" + result.Device
		device := specs.Device{Name: name}
		for _, controller := range controllers {
			node := &specs.DeviceNode{Path: "/dev/" + filepath.Base(controller)}
			device.ContainerEdits.DeviceNodes = append(device.ContainerEdits.DeviceNodes, node)
		}
		spec.Devices = append(spec.Devices, device)
		devices = append(devices, kubeletplugin.Device{
			Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device, CDIDeviceIDs: []string{cdiKind + "=" + name},
		})
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return devices, os.WriteFile(specFile(claim.UID), text, 0o644)
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error)
	for _, claim := range claims {
		if results[claim.UID] = os.Remove(specFile(claim.UID)); errors.Is(results[claim.UID], fs.ErrNotExist) {
			results[claim.UID] = nil
		}
	}
	return results, nil
}

func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (d *driver) HandleError(ctx context.Context, err error, msg string) {
	klog.FromContext(ctx).Error(err, msg)
}

func specFile(claim types.UID) string {
	return filepath.Join(cdiDir, strings.ReplaceAll(cdiKind, "/", "-")+"_"+string(claim)+".json")
}
