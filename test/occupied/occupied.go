// Package occupied makes snapshots of clusters whose devices are held, for tests of what
// shows them. The zones are those that the driver publishes of generated machines.
package occupied

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// Cluster is a snapshot that is being filled.
type Cluster struct {
	snapshot.Snapshot
	tb testing.TB
}

// New is an empty cluster.
func New(tb testing.TB) *Cluster { return &Cluster{tb: tb} }

// Share is what a claim holds of one device.
type Share struct {
	Request, Driver, Node, Device string // Driver "" is dra.numa
	Amounts                       string // "cpu=4,memory=1Gi"; "" is the whole device
	// CPUs are those in the status; nil is a status that is not written.
	CPUs     *string
	IdleCPUs string // of them
	Mems     string
	Function *deviceclasses.FunctionStatus // what the status says instead, of a PCI function
	Cache    *deviceclasses.CacheStatus    // what the status says instead, of a cache
	Fault    string                        // why the CPUs are not exclusive

	Performance *deviceclasses.PerformanceStatus // of the CPUs
	Admin       bool
}

// AddMachine adds a node whose zones are those of a preset of numa/fake.
func (c *Cluster) AddMachine(name, preset string, faults zones.Faults) {
	c.tb.Helper()
	machine := sample.Machine(c.tb, preset)
	reserved, err := driver.Reserved(machine, "", nil)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.AddNode(name)
	config := driver.Config{NodeName: name, Reserved: reserved, Exclusivity: driver.ExclusivityKernel}
	c.AddSlice(name, driver.Name, driver.Devices(machine, config, faults)...)
}

// AddNode adds a Node that is Ready.
func (c *Cluster) AddNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: meta("", name)}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.Nodes = append(c.Nodes, node)
	return node
}

// AddSlice adds devices of a node; its pool is named after it.
func (c *Cluster) AddSlice(node, driverName string, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{ObjectMeta: meta("", fmt.Sprintf("%s-%s-%d", node, driverName, len(c.Slices)))}
	slice.Spec = resourceapi.ResourceSliceSpec{
		Driver: driverName, NodeName: &node, Devices: devices,
		Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}
	c.Slices = append(c.Slices, slice)
	return slice
}

// AddClaim adds a claim, namespace/name, that holds something.
func (c *Cluster) AddClaim(key string, shares ...Share) *resourceapi.ResourceClaim {
	c.tb.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metaOf(key)}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for i, share := range shares {
		if share.Request == "" {
			share.Request = fmt.Sprintf("zone-%d", i)
		}
		if share.Driver == "" {
			share.Driver = driver.Name
		}
		request := resourceapi.DeviceRequest{Name: share.Request, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: "zone." + share.Driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		}}
		result := resourceapi.DeviceRequestAllocationResult{
			Request: share.Request, Driver: share.Driver, Pool: share.Node, Device: share.Device,
		}
		if share.Admin {
			result.AdminAccess, request.Exactly.AdminAccess = ptr.To(true), ptr.To(true)
		} else if share.Amounts != "" {
			result.ShareID = ptr.To(types.UID(fmt.Sprintf("%s-%d", claim.UID, i)))
			result.ConsumedCapacity = amounts(share.Amounts)
			request.Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: result.ConsumedCapacity}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, result)
		if share.CPUs != nil || share.Function != nil || share.Cache != nil {
			claim.Status.Devices = append(claim.Status.Devices, c.status(result, share))
		}
	}
	c.Claims = append(c.Claims, claim)
	return claim
}

func amounts(text string) map[resourceapi.QualifiedName]resource.Quantity {
	list := make(map[resourceapi.QualifiedName]resource.Quantity)
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		list[resourceapi.QualifiedName(name)] = resource.MustParse(value)
	}
	return list
}

// status is what the driver writes of a share.
func (c *Cluster) status(result resourceapi.DeviceRequestAllocationResult, share Share) resourceapi.AllocatedDeviceStatus {
	c.tb.Helper()
	status := resourceapi.AllocatedDeviceStatus{
		Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		Conditions: []metav1.Condition{{Type: deviceclasses.ConditionReady, Status: metav1.ConditionTrue, Reason: "Prepared", Message: "containers that use the claim can start"}},
	}
	if result.ShareID != nil {
		status.ShareID = ptr.To(string(*result.ShareID))
	}
	var data any
	switch {
	case share.Function != nil:
		data = share.Function
	case share.Cache != nil:
		data = share.Cache
	default:
		data = c.zoneStatus(share)
		exclusive := metav1.Condition{Type: "Exclusive", Status: metav1.ConditionTrue, Reason: "KernelPartition", Message: "the kernel keeps all other tasks off the CPUs"}
		if share.Fault != "" {
			exclusive = metav1.Condition{Type: "Exclusive", Status: metav1.ConditionFalse, Reason: "PartitionInvalid", Message: share.Fault}
		}
		status.Conditions = append(status.Conditions, exclusive)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		c.tb.Fatal(err)
	}
	status.Data = &runtime.RawExtension{Raw: raw}
	return status
}

func (c *Cluster) zoneStatus(share Share) deviceclasses.ZoneStatus {
	c.tb.Helper()
	parse := func(list string) cpuset.Set {
		set, err := cpuset.Parse(list)
		if err != nil {
			c.tb.Fatal(err)
		}
		return set
	}
	data := deviceclasses.ZoneStatus{CPUs: parse(*share.CPUs), Mems: parse(share.Mems), IdleCPUs: parse(share.IdleCPUs), Performance: share.Performance}
	if *share.CPUs != "" {
		data.Partition, data.Scope = deviceclasses.PartitionRoot, deviceclasses.ScopeContainer
		data.Why = fmt.Sprintf("%d CPUs in L3 %s, the tightest with room", data.CPUs.Size(), share.Mems)
	}
	return data
}

// AddPod adds a pod, namespace/name, that runs on a node, or waits for one if that
// is "", and uses claims of its namespace.
func (c *Cluster) AddPod(key, node string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf(key)}
	pod.Spec.NodeName, pod.Spec.SchedulerName = node, corev1.DefaultSchedulerName
	pod.Status.Phase = corev1.PodRunning
	if node == "" {
		pod.Status.Phase = corev1.PodPending
	}
	for _, name := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
		if claim := c.Claim(pod.Namespace, name); claim != nil && node != "" {
			claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{
				Resource: "pods", Name: pod.Name, UID: pod.UID,
			})
		}
	}
	c.Pods = append(c.Pods, pod)
	return pod
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}
}

func metaOf(key string) metav1.ObjectMeta {
	namespace, name, _ := strings.Cut(key, "/")
	return meta(namespace, name)
}
