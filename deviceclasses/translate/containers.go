package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// zoneClass is the class of the zones.
const zoneClass = "zone.dra.numa"

// numaNodes is how many NUMA nodes give equal parts if one does not have room.
const numaNodes = 2

// translation is a pod while it is translated.
type translation struct {
	options Options
	pod     *corev1.Pod
	spec    resourceapi.ResourceClaimSpec
	shares  []share             // of containers that run at the same time
	uses    map[string][]string // requests by container
	ways    int64               // that the container asks for, while it is added
	notes   []string
}

// share is the zone of a container, and what is near it.
type share struct {
	request   string // for the zone
	container string
	amounts   corev1.ResourceList
	places    []string            // alternatives of the request
	devices   map[string][]string // requests by class
}

// addContainers adds a request for each container that runs with others. One without whole
// CPUs has only memory of its own, as the kubelet's memory manager gives it.
//
// The scheduler gives a request its next alternative before it moves an earlier one. So those
// with the fewest places to be are first: with devices, and then with the most CPUs.
func (t *translation) addContainers() error {
	containers := ofPod(t.pod)
	slices.SortStableFunc(containers, func(a, b *corev1.Container) int {
		return cmp.Or(cmp.Compare(t.devices(b), t.devices(a)), cmp.Compare(t.cores(b), t.cores(a)))
	})
	for _, container := range containers {
		if cpus := container.Resources.Limits[corev1.ResourceCPU]; wholeCPUs(container) == 0 {
			t.note(container, "runs on shared CPUs: %s is no whole number", cpus.String())
		}
		if err := t.add(container); err != nil {
			return fmt.Errorf("container %q: %w", container.Name, err)
		}
		if err := t.checkSize(); err != nil {
			return err
		}
	}
	return nil
}

// devices counts the devices of the container that become requests.
func (t *translation) devices(container *corev1.Container) (count int64) {
	for name := range t.options.Twins {
		amount := container.Resources.Limits[name]
		count += amount.Value()
	}
	return count
}

// cores counts the cores of the container, which are the same before and after its
// translation.
func (t *translation) cores(container *corev1.Container) int64 {
	return (wholeCPUs(container) + t.options.ThreadsPerCore - 1) / t.options.ThreadsPerCore
}

// add makes a claim of the container's own, and adds it to that of the pod.
func (t *translation) add(container *corev1.Container) error {
	cpus, err := t.wholeCores(container)
	if err != nil {
		return err
	}
	wish := manifest.Wish{Class: zoneClass, CPUs: cpus, Memory: t.wholeSteps(container), Shares: 1}
	if wish.Devices, err = t.takeDevices(container); err != nil {
		return err
	}
	wish.Hugepages = pagesOf(container)
	if err := t.takeCache(container, &wish); err != nil {
		return err
	}
	t.place(container, &wish)
	spec, err := wish.Spec()
	if err != nil {
		return err
	}
	return t.merge(container, spec, wish)
}

// pagesOf returns the hugepages of the container by size.
func pagesOf(container *corev1.Container) (pages map[string]resource.Quantity) {
	for name, amount := range container.Resources.Limits {
		if size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); huge && !amount.IsZero() {
			if pages == nil {
				pages = map[string]resource.Quantity{}
			}
			pages[size] = amount
		}
	}
	return pages
}

// zoneAmounts are those that the container has of a zone.
func zoneAmounts(container *corev1.Container) corev1.ResourceList {
	amounts := corev1.ResourceList{corev1.ResourceMemory: container.Resources.Limits[corev1.ResourceMemory]}
	if wholeCPUs(container) > 0 {
		amounts[corev1.ResourceCPU] = container.Resources.Limits[corev1.ResourceCPU]
	}
	for size, amount := range pagesOf(container) {
		amounts[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size)] = amount
	}
	return amounts
}

// wholeCores returns the CPUs of the container, and changes its request and limit if they
// become more.
func (t *translation) wholeCores(container *corev1.Container) (int64, error) {
	cpus, threads := wholeCPUs(container), t.options.ThreadsPerCore
	rest := cpus % threads
	if rest == 0 {
		return cpus, nil
	}
	more := cpus + threads - rest
	if t.options.PartOfCore == PartOfCoreLeave {
		return 0, fmt.Errorf("%d CPUs are no whole cores of %d threads", cpus, threads)
	}
	t.note(container, "has %d CPUs in the place of %d: whole cores of %d threads", more, cpus, threads)
	setBoth(container, corev1.ResourceCPU, *resource.NewQuantity(more, resource.DecimalSI))
	return more, nil
}

// wholeSteps returns the memory of the container, and changes its request and limit if it
// becomes more: zones give whole mebibytes, and equal parts are whole, too.
func (t *translation) wholeSteps(container *corev1.Container) resource.Quantity {
	memory := container.Resources.Limits[corev1.ResourceMemory]
	step := accounting.LargestStep(deviceclasses.CapacityMemory)
	unit := step.Value()
	if t.places() != nil {
		unit *= numaNodes
	}
	rest := memory.Value() % unit
	if rest == 0 {
		return memory
	}
	more := *resource.NewQuantity(memory.Value()+unit-rest, resource.BinarySI)
	t.note(container, "has %s of memory in the place of %s: whole mebibytes", more.String(), memory.String())
	setBoth(container, corev1.ResourceMemory, more)
	return more
}

// setBoth sets a request and its limit.
func setBoth(container *corev1.Container, name corev1.ResourceName, amount resource.Quantity) {
	if container.Resources.Requests == nil {
		container.Resources.Requests = corev1.ResourceList{}
	}
	container.Resources.Requests[name], container.Resources.Limits[name] = amount, amount
}

// place says where the parts of the wish may be, as the policy wants them.
func (t *translation) place(container *corev1.Container, wish *manifest.Wish) {
	wish.Places = t.places()
	if wish.Parts = numaNodes; wish.Cache != nil || !t.divides(*wish) {
		wish.Parts = 1
	}
	if len(wish.Places) > 0 && wish.Parts == 1 && len(wish.Devices) == 0 {
		wish.Places = nil
		why := fmt.Sprintf("%d nodes cannot give equal parts of whole cores and pages", numaNodes)
		if wish.Cache != nil {
			why = "its ways are those of one cache"
		}
		t.note(container, "has one NUMA node, whatever the policy: %s", why)
	}
	if len(wish.Places) == 0 && len(wish.Devices) > 0 {
		wish.Same = manifest.SameNode
	}
}

// places are the alternatives of the policy; nil for one NUMA node only.
func (t *translation) places() []string {
	switch t.options.Policy {
	case PolicyRestricted:
		return []string{manifest.OneNode, manifest.OneSocket}
	case PolicyBestEffort, PolicyNone:
		return []string{manifest.OneNode, manifest.OneSocket, manifest.Anywhere}
	}
	return nil
}

// divides reports whether NUMA nodes can give equal parts of whole cores and pages.
func (t *translation) divides(wish manifest.Wish) bool {
	if wish.CPUs%(numaNodes*t.options.ThreadsPerCore) != 0 {
		return false
	}
	for size, amount := range wish.Hugepages {
		page, err := resource.ParseQuantity(size)
		if err != nil || page.Sign() <= 0 || amount.Value()%(numaNodes*page.Value()) != 0 {
			return false
		}
	}
	return true
}

// merge adds the claim of one container. Its request for a zone has the name of the
// container, and the names of its other requests say what they are for.
func (t *translation) merge(container *corev1.Container, spec resourceapi.ResourceClaimSpec, wish manifest.Wish) error {
	s := share{request: container.Name, container: container.Name, amounts: zoneAmounts(container), places: wish.Places, devices: map[string][]string{}}
	renamed, foreign := map[string]string{}, map[string]bool{}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		foreign[request.Name] = request.Exactly != nil && !strings.HasSuffix(request.Exactly.DeviceClassName, "."+deviceclasses.DriverName)
		name, zone := container.Name, request.Name == "zone"
		switch {
		case zone:
		case wish.Cache != nil && request.Name == cacheWord:
			name = requestName(container.Name, fmt.Sprintf("%s-%d", request.Name, t.ways))
		default:
			name = requestName(container.Name, request.Name)
			s.devices[request.Exactly.DeviceClassName] = append(s.devices[request.Exactly.DeviceClassName], name)
		}
		if !zone && t.taken(name) {
			return fmt.Errorf("its request %q would have the name of another one: give the container another name", name)
		}
		renamed[request.Name], request.Name = name, name
		setDefaults(request)
		t.spec.Devices.Requests = append(t.spec.Devices.Requests, *request)
		t.use(container, name)
	}
	rename := func(names []string) []string {
		if len(names) == 0 { // all requests of the container's own claim
			return slices.Clone(t.uses[container.Name])
		}
		for i, name := range names {
			request, place, alternative := strings.Cut(name, "/")
			if names[i] = renamed[request]; alternative {
				names[i] += "/" + place
			}
		}
		return names
	}
	for _, constraint := range spec.Devices.Constraints {
		if *constraint.MatchAttribute == deviceclasses.FullName(deviceclasses.AttributeSocket) {
			// Other drivers do not publish the socket, and a constraint refuses a device without
			// the attribute even if another alternative is chosen.
			constraint.Requests = slices.DeleteFunc(constraint.Requests, func(name string) bool { return foreign[name] })
		}
		constraint.Requests = rename(constraint.Requests)
		same := func(c resourceapi.DeviceConstraint) bool {
			return *c.MatchAttribute == *constraint.MatchAttribute && slices.Equal(c.Requests, constraint.Requests)
		}
		if !slices.ContainsFunc(t.spec.Devices.Constraints, same) {
			t.spec.Devices.Constraints = append(t.spec.Devices.Constraints, constraint)
		}
	}
	for _, config := range spec.Devices.Config {
		config.Requests = rename(config.Requests)
		t.spec.Devices.Config = append(t.spec.Devices.Config, config)
	}
	t.shares = append(t.shares, s)
	return nil
}

// longestStem leaves room for the name of a container in the name of a request.
const longestStem = 30

// Parts of the names of requests: app--gpu-0 is for a device, and app--cache-2 for ways.
const (
	separator = "--"
	cacheWord = "cache"
)

// requestName returns the name of a request of a container, such as app--gpu-0, in 63
// characters.
func requestName(container, what string) string {
	return container[:min(len(container), validation.DNS1123LabelMaxLength-len(separator)-len(what))] + separator + what
}

// taken reports whether a request or a container has the name.
func (t *translation) taken(name string) bool {
	return slices.ContainsFunc(t.spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return r.Name == name }) ||
		slices.ContainsFunc(slices.Concat(t.pod.Spec.InitContainers, t.pod.Spec.Containers), func(c corev1.Container) bool { return c.Name == name })
}

// setDefaults says what an API server would add, so that the stored template is the same.
func setDefaults(request *resourceapi.DeviceRequest) {
	fill := func(mode *resourceapi.DeviceAllocationMode, count *int64) {
		if *mode == "" {
			*mode, *count = resourceapi.DeviceAllocationModeExactCount, 1
		}
	}
	if request.Exactly != nil {
		fill(&request.Exactly.AllocationMode, &request.Exactly.Count)
	}
	for i := range request.FirstAvailable {
		fill(&request.FirstAvailable[i].AllocationMode, &request.FirstAvailable[i].Count)
	}
}

// use has the container use a request of the claim.
func (t *translation) use(container *corev1.Container, request string) {
	container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: claimName, Request: request})
	t.uses[container.Name] = append(t.uses[container.Name], request)
}

// alignPod puts the zones of all containers at one place, if the scope is the pod: those on
// one NUMA node on the same one, and all that are not just anywhere on one socket, also if
// only some of them have one NUMA node.
func (t *translation) alignPod() error {
	if t.options.Scope != ScopePod || len(t.shares) < 2 {
		return nil
	}
	var oneNode, oneSocket []string
	for _, s := range t.shares {
		if len(s.places) == 0 {
			oneNode, oneSocket = append(oneNode, s.request), append(oneSocket, s.request)
			continue
		}
		oneNode = append(oneNode, s.request+"/"+manifest.OneNode)
		oneSocket = append(oneSocket, s.request+"/"+manifest.OneNode, s.request+"/"+manifest.OneSocket)
	}
	node, socket := resourceapi.FullyQualifiedName(deviceclasses.AttributeNUMANode), deviceclasses.FullName(deviceclasses.AttributeSocket)
	t.spec.Devices.Constraints = append(t.spec.Devices.Constraints, resourceapi.DeviceConstraint{Requests: oneNode, MatchAttribute: &node})
	if t.places() != nil {
		t.spec.Devices.Constraints = append(t.spec.Devices.Constraints, resourceapi.DeviceConstraint{Requests: oneSocket, MatchAttribute: &socket})
	}
	return nil
}

func (t *translation) note(container *corev1.Container, format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf("container %q ", container.Name)+fmt.Sprintf(format, args...))
}
