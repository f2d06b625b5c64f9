package translate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// addInitContainers has each init container use what main containers have, as the kubelet's
// managers do. The pod holds its claim from the start, so what an init container had in
// addition would have to be requested in addition.
func (t *translation) addInitContainers() error {
	for i := range t.pod.Spec.InitContainers {
		container := &t.pod.Spec.InitContainers[i]
		if isSidecar(*container) {
			continue
		}
		if err := t.addInit(container, slices.ContainsFunc(t.pod.Spec.InitContainers[i+1:], isSidecar)); err != nil {
			return fmt.Errorf("init container %q: %w", container.Name, err)
		}
	}
	return nil
}

func (t *translation) addInit(container *corev1.Container, sidecarFollows bool) error {
	if _, has := container.Resources.Limits[cacheWays]; has {
		return fmt.Errorf("%s of an init container is not translated", cacheWays)
	}
	mains := slices.DeleteFunc(slices.Clone(t.shares), func(s share) bool {
		return !slices.ContainsFunc(t.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.container })
	})
	has := corev1.ResourceList{}
	for _, s := range mains {
		t.use(container, s.request)
		for name, amount := range s.amounts {
			sum := has[name]
			sum.Add(amount)
			has[name] = sum
		}
	}
	// If main containers are on the shared CPUs, so is one that wants no whole ones.
	_, own := has[corev1.ResourceCPU]
	onShared := !own && wholeCPUs(container) == 0
	if onShared {
		var sum resource.Quantity
		for _, main := range t.pod.Spec.Containers {
			sum.Add(main.Resources.Limits[corev1.ResourceCPU])
		}
		has[corev1.ResourceCPU] = sum
	}
	for _, name := range slices.Sorted(maps.Keys(container.Resources.Limits)) {
		amount, most := container.Resources.Limits[name], has[name]
		// The scheduler counts these of an init container, unless those of a sidecar are held
		// in addition.
		counted := name == corev1.ResourceMemory || name == corev1.ResourceCPU && onShared
		if counted && !sidecarFollows || isExtended(name) || name == corev1.ResourceEphemeralStorage {
			continue
		}
		if amount.Cmp(most) > 0 {
			return fmt.Errorf("it wants %s of %s, and all main containers have %s", amount.String(), name, most.String())
		}
	}
	return t.takeInitDevices(container, mains)
}

// takeInitDevices has an init container use devices of main containers.
func (t *translation) takeInitDevices(container *corev1.Container, mains []share) error {
	devices, err := t.takeDevices(container)
	if err != nil {
		return err
	}
	used := map[string]int{}
	for _, wanted := range devices {
		var has []string
		for _, s := range mains {
			has = append(has, s.devices[wanted.Class]...)
		}
		n := used[wanted.Class]
		if n == len(has) {
			return fmt.Errorf("it wants more devices of %s than all main containers, which have %d", wanted.Class, n)
		}
		t.use(container, has[n])
		used[wanted.Class]++
	}
	return nil
}
