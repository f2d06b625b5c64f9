package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var _ = Describe("the installed classes for fast and quiet CPUs", withPower, func() {
	It("give their claims what they are for, side by side", ofGate, func(ctx context.Context) {
		namespace, before, interrupts := createNamespace(ctx, "installed"), cpuSettings(ctx), affinities(ctx)["default"]
		highest := frequenciesInKernel(ctx).highest // which is base, because none is for turbo
		wanted := map[string]string{
			"performance": fmt.Sprintf("performance %d %d -", highest, highest),
			"quiet":       fmt.Sprintf("- %d %d 20", highest, highest),
			"powersave":   fmt.Sprintf("powersave - %d -", highest),
		}
		pods := map[string]*corev1.Pod{}
		for name := range wanted {
			core := oneCore(ctx)
			core.zone = anyZone
			createClaim(ctx, namespace, ofClass(name+"."+driverName, newClaim(name, core)))
			pods[name] = createPod(ctx, namespace, withoutRequests(claimPod(name, core))) // some nodes have no more CPUs than these
		}
		settings := before
		for name, values := range wanted {
			pods[name] = waitRunning(ctx, pods[name])
			settings = replaced(settings, cpusOfContainer(ctx, pods[name]), values)
		}
		Expect(cpuSettings(ctx)).To(Equal(settings))
		quiet := cpusOfContainer(ctx, pods["quiet"])
		checkQuiet(ctx, Default, pods["quiet"], quiet)
		Expect(cpuset.ParseMask(affinities(ctx)["default"])).To(WithTransform(quiet.Overlaps, BeFalse()), "CPUs of new interrupts")

		By("ending all of them")
		for _, pod := range pods {
			beginDelete(ctx, pod)
		}
		for _, pod := range pods {
			waitGone(ctx, pod)
		}
		Expect(cpuSettings(ctx)).To(Equal(before))
		Eventually(ctx, func() string { return affinities(ctx)["default"] }).Should(Equal(interrupts), "CPUs of new interrupts")
	})
})

// Caches and frequencies in one claim: only the node of make e2e-devices has both.
var _ = Describe("a class with parameters, some of which it locks", ofGate, func() {
	It("gives its claims what it says, and refuses claims that say something else", func(ctx context.Context) {
		const steady, few = "e2e-steady.example.com", "e2e-few-ways.example.com"
		namespace, before, has, pool := createNamespace(ctx, "locked"), cpuSettings(ctx), frequenciesInKernel(ctx), poolsOfNode(ctx).BestEffort
		if pool.DefaultMaxWays == pool.DefaultMinWays {
			lacks("claims of the pool besteffort have no more ways than %d", pool.DefaultMinWays)
		}
		cpus := oneCore(ctx).cpus
		claim := func(name string, ways int64, config ...resourceapi.DeviceClaimConfiguration) *resourceapi.ResourceClaim {
			claim := alike("dra.numa/l3", claimOfDevices(name, shareOf("cpus", steady, map[string]int64{"cpu": cpus}), shareOf("ways", few, map[string]int64{"ways": ways})))
			claim.Spec.Devices.Config = config
			return claim
		}
		refused := map[string]*resourceapi.ResourceClaim{
			"partition": claim("partition", 0, ofRequest("cpus", configOf(deviceclasses.ZoneConfigKind, `"partition": "none"`))),
			"governor":  claim("governor", 0, ofRequest("cpus", configOf(deviceclasses.PerformanceConfigKind, `"governor": "powersave"`))),
			"ways":      claim("ways", int64(pool.DefaultMinWays)+1),
		}
		const locks = "locks this field"

		By("creating claims, and then their classes, so that the webhook does not refuse the claims")
		for _, early := range refused {
			createClaim(ctx, namespace, early.DeepCopy())
		}
		createClass(ctx, steady, ofKind(deviceclasses.KindZone),
			parameters(configOf(deviceclasses.ZoneConfigKind, `"partition": "isolated", "locked": ["partition", "mixed"]`)),
			parameters(configOf(deviceclasses.PerformanceConfigKind, `"governor": "performance", "minFrequency": "max", "locked": ["governor"]`)))
		createClass(ctx, few, ofKind(deviceclasses.KindCache)+` && device.attributes["dra.numa"].pool == "besteffort"`,
			parameters(configOf(deviceclasses.CacheConfigKind, fmt.Sprintf(`"maxWays": %d, "locked": ["maxWays", "ways"]`, pool.DefaultMinWays))))
		for name, late := range refused {
			late.Name = "late-" + name
			_, err := cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).Create(ctx, late, metav1.CreateOptions{})
			Expect(err).To(MatchError(ContainSubstring(locks)), "claim %s, of which the webhook knows the class", late.Name)
		}

		By("starting pods")
		createClaim(ctx, namespace, claim("obeys", 0, ofRequest("cpus", configOf(deviceclasses.PerformanceConfigKind, `"governor": "performance", "idleLatency": 20`))))
		pod := createPod(ctx, namespace, withoutRequests(claimPod("obeys", request{cpus: cpus})))
		for name := range refused {
			createPod(ctx, namespace, withoutRequests(claimPod(name, request{cpus: cpus})))
		}
		for name := range refused {
			Eventually(ctx, eventMessages).WithArguments(namespace, name).Should(ContainElement(ContainSubstring(locks)), "events of pod %s", name)
		}
		pod = waitRunning(ctx, pod)
		process := inKernel(snapshot(ctx), pod)
		Expect(process.Partition).To(Equal("isolated"), "cpuset.cpus.partition of %s", process.Cgroup)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, process.CPUs, fmt.Sprintf("performance %d %d 20", has.highest, has.highest))))
		expectWays(ctx, pod, pool.DefaultMinWays, 100)
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
	})
})

var _ = Describe("a node on which only DeviceClasses bind drivers and change CPUs", withDevices, atLength, func() {
	It("does what the classes of a claim say, and refuses what a claim adds", func(ctx context.Context) {
		configureNode(ctx, "devices: {presets: [nvme], bindDrivers: class}\nperformance: {allow: class}")
		const vfio, fast = "e2e-vfio.example.com", "e2e-fast.example.com"
		createClass(ctx, vfio, ofKind("nvme"), parameters(configOf(deviceclasses.DeviceConfigKind, `"driver": "vfio-pci", "locked": ["driver"]`)))
		createClass(ctx, fast, ofKind(deviceclasses.KindZone), parameters(configOf(deviceclasses.PerformanceConfigKind, `"governor": "performance", "minFrequency": "max"`)))
		namespace, before, highest, core := createNamespace(ctx, "class"), cpuSettings(ctx), frequenciesInKernel(ctx).highest, oneCore(ctx)
		core.zone = anyZone
		drives := func(ctx context.Context) map[string]string {
			drivers := map[string]string{}
			for _, address := range addressesOf(publishedDrives(ctx)) {
				driver, err := driverOf(ctx, address)
				Expect(err).NotTo(HaveOccurred())
				drivers[address] = driver
			}
			return drivers
		}
		bound := drives(ctx)

		By("asking for more than the class says")
		const ofDriver, ofCPUs = "only a DeviceClass can ask for a driver on this node: devices.bindDrivers is class", "only a DeviceClass can change this on this node: performance.allow is class"
		var pods []*corev1.Pod
		for _, row := range []struct {
			claim *resourceapi.ResourceClaim
			want  string
		}{
			{configured(configOf(deviceclasses.DeviceConfigKind, `"driver": "vfio-pci"`), claimOfDevices("driver", wholeDevice("drive", "nvme.dra.numa"))), ofDriver},
			{configured(performanceConfig(`"governor": "performance"`), newClaim("frequency", core)), ofCPUs},
			{configured(performanceConfig(`"idleLatency": 20`), ofClass(fast, newClaim("more", core))), ofCPUs},
		} {
			name := row.claim.Name
			createClaim(ctx, namespace, row.claim)
			pods = append(pods, createPod(ctx, namespace, withoutRequests(claimPod(name, core))))
			Eventually(ctx, eventMessages).WithArguments(namespace, name).Should(ContainElement(ContainSubstring(row.want)), "events of pod %s", name)
		}
		Expect(cpuSettings(ctx)).To(Equal(before), "what claims may not change")
		Expect(drives(ctx)).To(Equal(bound), "drivers that claims may not bind")
		for _, pod := range pods {
			beginDelete(ctx, pod)
		}

		By("asking for no more than the classes say")
		claim := ofClass(fast, newClaim("both", core))
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, wholeDevice("drive", vfio))
		createClaim(ctx, namespace, claim)
		pod := waitRunning(ctx, createPod(ctx, namespace, withoutRequests(claimPod("both", core))))
		drive := allocatedFunctions(ctx, claimOf(ctx, pod))["drive"][0].address
		expectGroups(ctx, pod, map[string]string{drive: bound[drive]})
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, cpusOfContainer(ctx, pod), fmt.Sprintf("performance %d %d -", highest, highest))))
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
		Eventually(ctx, drives).Should(Equal(bound), "drivers after the claim")
	})
})

// ofKind is true for the driver's devices of a kind.
func ofKind(kind string) string {
	return fmt.Sprintf(`device.driver == %q && device.attributes[%q].kind == %q`, driverName, driverName, kind)
}

// createClass creates a DeviceClass for devices for which an expression is true, until the spec
// ends.
func createClass(ctx context.Context, name, where string, config ...resourceapi.DeviceConfiguration) {
	GinkgoHelper()
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: where}}}
	for _, one := range config {
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: one})
	}
	classes := cluster.Kubernetes.ResourceV1().DeviceClasses()
	_, err := classes.Create(ctx, class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(classes.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed()) })
}
