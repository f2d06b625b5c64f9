// Package accounting compares what claims hold of zones with what pods request: what a
// claim holds of its node, what a pod must request so that the scheduler and the kubelet
// count it, and where the two differ. The scheduler and the kubelet do not look at
// claims. The package only computes: it reads no cluster and changes nothing.
package accounting

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Share is what one request of a claim holds of zones, from the pod's start to its end,
// whatever its containers do.
type Share struct {
	// Claim is the pod's name for the claim.
	Claim string
	// Request is the name of the request; for a subrequest, that of the main request.
	Request string
	// Amounts have the names and units of a pod's requests; each is more than 0.
	Amounts corev1.ResourceList
}

// UsedBy reports whether the container uses the share.
func (s Share) UsedBy(container corev1.Container) bool {
	for _, ref := range container.Resources.Claims {
		if ref.Name == s.Claim && (ref.Request == "" || ref.Request == s.Request) {
			return true
		}
	}
	return false
}

// UnclaimedHugepages returns the hugepages that the container has by its own limits, while
// none of the shares that it uses has pages of that size.
func UnclaimedHugepages(container corev1.Container, shares []Share) corev1.ResourceList {
	unclaimed := corev1.ResourceList{}
	for name, amount := range container.Resources.Limits {
		claimed := slices.ContainsFunc(shares, func(share Share) bool {
			_, has := share.Amounts[name]
			return has && share.UsedBy(container)
		})
		if isHugepages(name) && !amount.IsZero() && !claimed {
			unclaimed[name] = amount
		}
	}
	return unclaimed
}

// Held is what an allocated claim holds. name is the pod's name for the claim. It is
// empty for a claim without an allocation, and for a claim of other drivers.
func Held(name string, claim *resourceapi.ResourceClaim) []Share {
	if claim.Status.Allocation == nil {
		return nil
	}
	var shares []Share
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != deviceclasses.DriverName || result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		main, _, _ := strings.Cut(result.Request, "/")
		amounts := corev1.ResourceList{}
		for key, amount := range spelling.Amounts(result.Driver, result.ConsumedCapacity) {
			if resource, known := resourceOf(key); known && amount.Sign() > 0 {
				amounts[resource] = amount
			}
		}
		shares = addShare(shares, Share{name, main, amounts})
	}
	return shares
}

// addShare joins the results of one request, which may have several devices.
func addShare(shares []Share, next Share) []Share {
	if len(next.Amounts) == 0 {
		return shares
	}
	for i := range shares {
		if shares[i].Claim == next.Claim && shares[i].Request == next.Request {
			add(shares[i].Amounts, next.Amounts)
			return shares
		}
	}
	return append(shares, next)
}

// wanted is what a claim will hold, rounded as the scheduler rounds. It is an error if
// that depends on what the scheduler chooses, or if a class is not known.
func wanted(name string, spec resourceapi.ResourceClaimSpec, known Known, how counting) ([]Share, error) {
	var shares []Share
	for _, request := range spec.Devices.Requests {
		amounts, err := wantedOf(request, known, how)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", request.Name, err)
		}
		shares = addShare(shares, Share{name, request.Name, amounts})
	}
	return shares, nil
}

// wantedOf are the amounts of one request.
func wantedOf(request resourceapi.DeviceRequest, known Known, how counting) (corev1.ResourceList, error) {
	if exactly := request.Exactly; exactly != nil {
		if exactly.AdminAccess != nil && *exactly.AdminAccess {
			return nil, nil
		}
		return amountsOf(asked{
			exactly.DeviceClassName, exactly.Selectors, exactly.Capacity, exactly.AllocationMode, exactly.Count,
		}, known, how)
	}
	var all corev1.ResourceList
	for i, sub := range request.FirstAvailable {
		amounts, err := amountsOf(asked{sub.DeviceClassName, sub.Selectors, sub.Capacity, sub.AllocationMode, sub.Count}, known, how)
		switch {
		case err != nil:
			return nil, err
		case i == 0 || how == most:
			all = largest(all, amounts)
		case !equal(all, amounts):
			return nil, fmt.Errorf("its alternatives %q and %q hold different amounts", request.FirstAvailable[0].Name, sub.Name)
		}
	}
	return all, nil
}

// asked is what requests and subrequests have in common.
type asked struct {
	class     string
	selectors []resourceapi.DeviceSelector
	capacity  *resourceapi.CapacityRequirements
	mode      resourceapi.DeviceAllocationMode
	count     int64
}

// mostOfZone is more CPUs, and more bytes, than any zone has.
const mostOfZone = 1 << 46

// amountsOf are the most that a request can hold of zones. Only a proof says that it gets
// no zone.
func amountsOf(ask asked, known Known, how counting) (corev1.ResourceList, error) {
	none := ask.capacity == nil || len(ask.capacity.Requests) == 0
	if none && how == most { // whatever the class, which may be another driver's
		return nil, nil
	}
	class := known.DeviceClass(ask.class)
	switch {
	case class == nil:
		return nil, fmt.Errorf("there is no device class %q", ask.class)
	case none:
		return nil, nil
	}
	amounts, err := ask.amounts(known.Steps())
	if err == nil && len(amounts) == 0 {
		return nil, nil
	}
	switch gets, broken := known.Selectors().OfZones(class.Spec.Selectors, ask.selectors, ask.capacity.Requests); {
	case broken != nil:
		return nil, broken
	case gets == probe.NoZone:
		return nil, nil
	case gets == probe.Unclear:
		return nil, fmt.Errorf("its selectors may select zones or other devices, so what it will hold is not known: begin one with device.driver == \"NAME\" &&, where NAME is the driver of the devices")
	}
	return amounts, err
}

// amounts are those of zones, if the request gets zones.
func (a asked) amounts(steps Steps) (corev1.ResourceList, error) {
	amounts := corev1.ResourceList{}
	for key, amount := range spelling.Amounts(deviceclasses.DriverName, a.capacity.Requests) {
		resource, ours := resourceOf(key)
		if !ours || amount.Sign() <= 0 {
			continue
		}
		if !spelling.Countable(amount) || amount.CmpInt64(mostOfZone) > 0 {
			return nil, fmt.Errorf("%s %s: no zone has that much", key, amount.String())
		}
		rounded := steps.round(key, amount)
		rounded.Mul(max(a.count, 1)) // 0 means the default, 1
		amounts[resource] = rounded
	}
	switch {
	case len(amounts) == 0:
	case a.mode == resourceapi.DeviceAllocationModeAll:
		return nil, fmt.Errorf("allocationMode All: the number of zones depends on the node")
	case a.count > resourceapi.AllocationResultsMaxSize:
		return nil, fmt.Errorf("count %d: a claim can have at most %d devices", a.count, resourceapi.AllocationResultsMaxSize)
	}
	return amounts, nil
}
