package diagnosis

import (
	"cmp"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// zonesPublished finds nodes with a ready daemon whose pool of devices is not complete.
func zonesPublished(f *Facts) (findings []Finding) {
	pools := make(map[string][]*resourceapi.ResourceSlice)
	for _, slice := range f.zones() {
		pools[*slice.Spec.NodeName] = append(pools[*slice.Spec.NodeName], slice)
	}
	for _, pod := range f.DaemonPods() {
		if ready, _ := podReady(pod); !ready {
			continue // already a finding of driver-ready
		}
		node := pod.Spec.NodeName
		newest, got := int64(-1), 0
		var want int64 = 1
		for _, slice := range pools[node] {
			pool := slice.Spec.Pool
			if pool.Generation > newest {
				newest, got, want = pool.Generation, 0, pool.ResourceSliceCount
			}
			if pool.Generation == newest {
				got++
			}
		}
		if int64(got) < want {
			findings = append(findings, Finding{
				Node: node, Component: driver.Name, Setting: "ResourceSlices",
				Expected: fmt.Sprintf("%d or more", want), Detected: fmt.Sprint(got),
			})
			pools[node] = nil
		}
	}
	return findings
}

// publishingPaused finds nodes whose ResourceSlices stay as they are, because an administrator
// wants that. Only nodes that were asked say so.
func publishingPaused(f *Facts) (findings []Finding) {
	for _, node := range f.Nodes() {
		if state := f.States[node]; state != nil && state.Host != nil && state.Host.Paused != "" {
			findings = append(findings, Finding{
				Node: node, Component: driver.Name, Setting: "publishing",
				Expected: deviceclasses.PublishingRunning + ", when the work on the node is done", Detected: deviceclasses.PublishingPaused + ": " + state.Host.Paused,
			})
		}
	}
	return findings
}

// madeUpMachine finds nodes that only pretend to have their machine.
func madeUpMachine(f *Facts) (findings []Finding) {
	seen := make(map[string]bool)
	for _, slice := range f.zones() {
		for _, device := range slice.Spec.Devices {
			if node := *slice.Spec.NodeName; isMadeUp(device) && !seen[node] {
				seen[node] = true
				findings = append(findings, Finding{
					Node: node, Component: driver.Name, Setting: "machine",
					Expected: "that of the node", Detected: "a made-up one (madeUpMachine of the chart): no container is pinned",
				})
			}
		}
	}
	return findings
}

func isMadeUp(device resourceapi.Device) bool {
	return ptr.Deref(deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeMadeUp).BoolValue, false)
}

// oldestPartitions is the oldest kernel with which the driver isolates CPUs by the kernel.
const oldestPartitions = "6.11.0"

// zoneExclusivity compares the exclusivity of zones with what the chart's value or the NodeConfig
// asks for. With auto, the kernel of the node decides.
func zoneExclusivity(f *Facts) (findings []Finding) {
	config, known := f.Installation.nodeConfig()
	if !known {
		return nil // it may ask for another exclusivity on each node
	}
	given, _ := Argument(f.Installation.daemon(), "exclusivity")
	nodes := f.nodeObjects()
	for _, slice := range f.zones() {
		node := *slice.Spec.NodeName
		object := nodes[node]
		var labels map[string]string
		if object != nil {
			labels = object.Labels
		}
		want := cmp.Or(config.For(labels).Exclusivity, given, deviceclasses.ExclusivityAuto)
		auto := want == deviceclasses.ExclusivityAuto
		if auto {
			want = string(driver.ExclusivityKernel)
		}
		for _, device := range slice.Spec.Devices {
			is := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeExclusivity).StringValue
			if is == nil || *is == want || isMadeUp(device) {
				continue
			}
			expected, detected := want+exclusivityNeeds(want), *is
			if object != nil {
				kernel := object.Status.NodeInfo.KernelVersion
				detected += ", with Linux " + kernel
				if auto && older(kernel, oldestPartitions) {
					if *is == string(driver.ExclusivityCooperative) {
						break // as good as it gets
					}
					expected += ", or " + string(driver.ExclusivityCooperative) + ", which needs NRI"
				}
			}
			findings = append(findings, Finding{
				Node: node, Component: driver.Name, Setting: string(deviceclasses.FullName(deviceclasses.AttributeExclusivity)),
				Expected: expected, Detected: detected,
			})
			break // all zones of a node have the same exclusivity
		}
	}
	return findings
}

func exclusivityNeeds(mode string) string {
	if mode == string(driver.ExclusivityKernel) {
		return ", which needs Linux 6.11 or newer"
	}
	return ""
}

// deviceTaint finds devices with a fault that the daemon could not repair, or that the
// kernel reported.
func deviceTaint(f *Facts) (findings []Finding) {
	for _, slice := range f.zones() {
		for _, device := range slice.Spec.Devices {
			for _, taint := range device.Taints {
				if taint.Effect == resourceapi.DeviceTaintEffectNone {
					continue // it does nothing
				}
				findings = append(findings, Finding{
					Node: *slice.Spec.NodeName, Component: "device " + device.Name, Setting: "taints",
					Expected: "none", Detected: fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect),
				})
			}
		}
	}
	return findings
}

// staleSlices finds slices of nodes that do not exist. The scheduler may count their
// devices as there.
func staleSlices(f *Facts) (findings []Finding) {
	nodes, told := f.nodeObjects(), make(map[string]bool)
	for _, slice := range f.zones() {
		name := *slice.Spec.NodeName
		if nodes[name] != nil || told[name] {
			continue
		}
		told[name] = true
		findings = append(findings, Finding{Node: name, Component: driver.Name, Setting: "ResourceSlices", Expected: "only of nodes that exist", Detected: "no Node " + name})
	}
	return findings
}
