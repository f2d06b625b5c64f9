package e2e

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// withPower marks specs for a node whose CPUs have frequencies and idle states: make
// e2e-power runs them.
var withPower = Label("power", withOwnBoot)

// The CPUs of the node have 1, 2 and 3 GHz, and an idle state from which they wake up
// within 10 µs; test/rig/topology/machines/power.yaml.
var _ = Describe("claims of fast CPUs", withPower, func() {
	It("have them as they ask, and give back what the CPUs had", ofGate, func(ctx context.Context) {
		namespace, before, has := createNamespace(ctx, "fast"), cpuSettings(ctx), frequenciesInKernel(ctx)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "fast",
			fmt.Sprintf(`"governor": "performance", "minFrequency": %q, "maxFrequency": "max", "idleLatency": 20`, deviceclasses.FrequencyText(has.middle))))
		cpus := cpusOfContainer(ctx, pod)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, cpus, fmt.Sprintf("performance %d %d 20", has.middle, has.highest))))
		Expect(performanceOf(ctx, pod).Frequencies).To(Equal([]deviceclasses.FrequencyStatus{{
			Policies: cpus, Driver: has.driver, Governor: "performance",
			MinFrequency: deviceclasses.FrequencyText(has.middle), MaxFrequency: deviceclasses.FrequencyText(has.highest),
		}}))
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
	})

	It("say what the kernel made of frequencies that the CPUs do not have", ofGate, func(ctx context.Context) {
		namespace, before, has := createNamespace(ctx, "limited"), cpuSettings(ctx), frequenciesInKernel(ctx)
		middle, tenth := deviceclasses.FrequencyText(has.middle), (has.highest-has.middle)/10
		least, most := deviceclasses.FrequencyText(has.middle+tenth), deviceclasses.FrequencyText(has.middle+4*tenth)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "limited", fmt.Sprintf(`"minFrequency": %q, "maxFrequency": %q`, least, most)))
		cpus := cpusOfContainer(ctx, pod)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, cpus, fmt.Sprintf("- %d %d -", has.middle, has.middle))))
		said := performanceOf(ctx, pod)
		Expect(said.Asked.MinFrequency).To(Equal(least))
		Expect(said.Asked.MaxFrequency).To(Equal(most))
		Expect(said.Frequencies).To(Equal([]deviceclasses.FrequencyStatus{{Policies: cpus, Driver: has.driver, MinFrequency: middle, MaxFrequency: middle}}))
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
	})

	It("do not change each other's CPUs, and begin and end in any order", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "both"), cpuSettings(ctx)
		first := waitRunning(ctx, createTuned(ctx, namespace, "first", `"governor": "performance", "idleLatency": 100`))
		ofFirst := replaced(before, cpusOfContainer(ctx, first), "performance 1000000 3000000 100")
		second := waitRunning(ctx, createTuned(ctx, namespace, "second", `"governor": "powersave", "maxFrequency": "min"`))
		slow := cpusOfContainer(ctx, second)
		Expect(cpuSettings(ctx)).To(Equal(replaced(ofFirst, slow, "powersave 1000000 1000000 0")))
		deletePod(ctx, first)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, slow, "powersave 1000000 1000000 0")))
		deletePod(ctx, second)
		Expect(cpuSettings(ctx)).To(Equal(before))
	})

	It("leave what another program writes meanwhile", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "meanwhile"), cpuSettings(ctx)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "meanwhile", `"governor": "performance", "minFrequency": "2GHz", "idleLatency": 20`))
		cpu, _ := cpusOfContainer(ctx, pod).First()
		DeferCleanup(func(ctx context.Context) { writeFrequency(ctx, cpu, "scaling_governor", "schedutil") })
		writeFrequency(ctx, cpu, "scaling_governor", "powersave")
		deletePod(ctx, pod)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, cpuset.New(cpu), "powersave 1000000 3000000 0")))
	})

	It("have CPUs as they ask that were offline, and give them back when they are online", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "online"), cpuSettings(ctx)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "online", `"governor": "performance", "minFrequency": "2GHz"`))
		cpus := cpusOfContainer(ctx, pod)
		first, _ := cpus.First()
		gone := cpus.Difference(cpuset.New(first))
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetOnline(ctx, gone, true)).To(Succeed()) })
		Expect(observer.SetOnline(ctx, gone, false)).To(Succeed())
		Expect(observer.SetOnline(ctx, gone, true)).To(Succeed())
		Eventually(ctx, cpuSettings).Should(Equal(replaced(before, cpus, "performance 2000000 3000000 0")))

		By("ending the claim while a CPU is offline")
		Expect(observer.SetOnline(ctx, gone, false)).To(Succeed())
		beginDelete(ctx, pod)
		there := cpus.Difference(gone)
		Eventually(ctx, func() map[int]string { return only(cpuSettings(ctx), there) }).Should(Equal(only(before, there)), "CPUs that are online")
		Expect(observer.SetOnline(ctx, gone, true)).To(Succeed())
		Eventually(ctx, cpuSettings).Should(Equal(before))
		waitGone(ctx, pod)
	})

	It("are refused with what there is", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "refused"), cpuSettings(ctx)
		for name, row := range map[string]struct{ fields, want string }{
			"governor":   {`"governor": "ondemand"`, `governor: "ondemand", cpus %s with the frequency driver acpi-cpufreq have `},
			"range":      {`"maxFrequency": "1.5x base"`, `maxFrequency: "1.5x base" is 4.5GHz, cpus %s have 1GHz to 3GHz`},
			"preference": {`"energyPreference": "power"`, `energyPreference: "power", cpus %s with the frequency driver acpi-cpufreq have none: `},
		} {
			pod := createTuned(ctx, namespace, name, row.fields)
			before, after, _ := strings.Cut(row.want, "%s")
			Eventually(ctx, eventMessages).WithArguments(namespace, pod.Name).Should(ContainElement(And(ContainSubstring(before), ContainSubstring(after))), name)
			messages, err := eventMessages(ctx, namespace, pod.Name)
			Expect(err).NotTo(HaveOccurred())
			if name == "governor" {
				for _, governor := range []string{"performance", "powersave", "schedutil"} {
					Expect(messages).To(ContainElement(ContainSubstring(governor)))
				}
			}
			deletePod(ctx, pod)
		}
		Expect(cpuSettings(ctx)).To(Equal(before))
	})

	It("have CPUs as they ask if the driver is killed before the first write", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "recorded"), cpuSettings(ctx)
		stopBefore(ctx, "scaling_governor")
		pod := createTuned(ctx, namespace, "recorded", slowAndSteady)
		waitStopped(ctx)
		Expect(observer.Run(ctx, `cat "$1"`, nodeCheckpoint)).To(ContainSubstring(`"before":{"governor":"schedutil"`), "the checkpoint")
		Expect(cpuSettings(ctx)).To(Equal(before))
		killDriver(ctx)
		pod = waitRunning(ctx, pod)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, cpusOfContainer(ctx, pod), "performance 2000000 2000000 0")))
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
	})

	It("give CPUs back if the driver is killed after a write that it has not read back", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "written"), cpuSettings(ctx)
		stopBefore(ctx, "scaling_min_freq")
		pod := createTuned(ctx, namespace, "written", slowAndSteady)
		waitStopped(ctx)
		Expect(cpuSettings(ctx)).To(ContainElement("performance 1000000 2000000 0"))
		beginDelete(ctx, pod)
		killDriver(ctx)
		expectGone(ctx, pod, before)
	})

	It("give CPUs back if the driver is killed while it does that", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "restored"), cpuSettings(ctx)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "restored", slowAndSteady))
		stopBefore(ctx, "scaling_min_freq")
		beginDelete(ctx, pod)
		waitStopped(ctx)
		Expect(cpuSettings(ctx)).To(ContainElement("schedutil 2000000 3000000 0"))
		killDriver(ctx)
		expectGone(ctx, pod, before)
	})

	It("have CPUs as they ask after the node has restarted, and give them back", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "boot"), cpuSettings(ctx)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "boot", slowAndSteady))
		Expect(observer.Reboot(ctx)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		waitDriverReady(ctx)
		Expect(cpuSettings(ctx)).To(Equal(replaced(before, cpusOfContainer(ctx, pod), "performance 2000000 2000000 0")))
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
	})
})

var _ = Describe("CPUs that no claim changes", withPower, func() {
	It("have the default of the NodeConfig, claims start from it, and it is taken back", func(ctx context.Context) {
		namespace, before := createNamespace(ctx, "default"), cpuSettings(ctx)
		const slow = "powersave 1000000 2000000 50"
		byDefault := replaced(before, coresWithout(ctx, kubeletReserved(ctx)), slow)
		Expect(byDefault).NotTo(Equal(before))

		By("asking for it for the CPUs that claims can get")
		configureNode(ctx, "performance: {allow: claim, default: {governor: powersave, maxFrequency: 2GHz, idleLatency: 50}}")
		Eventually(ctx, cpuSettings).Should(Equal(byDefault))
		core := oneCore(ctx)
		core.zone = anyZone
		plain := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("plain", core), core))
		tuned := waitRunning(ctx, createTuned(ctx, namespace, "tuned", `"governor": "performance", "maxFrequency": "max"`))
		fast := replaced(byDefault, cpusOfContainer(ctx, tuned), "performance 1000000 3000000 50")
		Expect(cpuSettings(ctx)).To(Equal(fast), "a claim asked, and that of CPUs %s did not", cpusOfContainer(ctx, plain))

		By("taking CPUs offline, which makes the kernel forget, and killing the driver")
		gone := cpusOfContainer(ctx, tuned)
		beginDelete(ctx, tuned)
		expectGone(ctx, tuned, byDefault)
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetOnline(ctx, gone, true)).To(Succeed()) })
		Expect(observer.SetOnline(ctx, gone, false)).To(Succeed())
		killDriver(ctx)
		Expect(observer.SetOnline(ctx, gone, true)).To(Succeed())
		Eventually(ctx, cpuSettings).Should(Equal(byDefault))

		By("asking for it for reserved CPUs, too")
		configureNode(ctx, "performance: {default: {governor: powersave, maxFrequency: 2GHz, idleLatency: 50, reservedCPUs: true}}")
		Eventually(ctx, cpuSettings).Should(HaveEach(slow))

		By("asking for nothing")
		configureNode(ctx, "performance: {default: {}}")
		Eventually(ctx, cpuSettings).Should(Equal(before))
	})
})

// coresWithout returns the CPUs of the node's cores that have none of these CPUs.
func coresWithout(ctx context.Context, cpus cpuset.Set) (others cpuset.Set) {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cat "$1"/cpu[0-9]*/topology/thread_siblings_list`, cpuFolder)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(text) {
		core, err := cpuset.Parse(strings.TrimSpace(line))
		Expect(err).NotTo(HaveOccurred())
		if !core.Overlaps(cpus) {
			others = others.Union(core)
		}
	}
	return others
}

// slowAndSteady makes the driver write, for each CPU, the governor, then the highest and
// then the lowest frequency. It restores in the same order.
const slowAndSteady = `"governor": "performance", "minFrequency": "2GHz", "maxFrequency": "2GHz"`

const cpuFolder = "/proc/1/root/sys/devices/system/cpu"

// cpuSettings returns governor, lowest and highest frequency and limit of idle states of each
// CPU that is online.
func cpuSettings(ctx context.Context) map[int]string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd "$1" && for cpu in cpu[0-9]*; do
		echo "${cpu#cpu}" $(cat $cpu/cpufreq/scaling_governor $cpu/cpufreq/scaling_min_freq $cpu/cpufreq/scaling_max_freq 2>/dev/null &&
			cat $cpu/power/pm_qos_resume_latency_us); done`, cpuFolder)
	Expect(err).NotTo(HaveOccurred())
	settings := map[int]string{}
	for line := range strings.Lines(text) {
		id, values, online := strings.Cut(strings.TrimSpace(line), " ")
		cpu, err := strconv.Atoi(id)
		Expect(err).NotTo(HaveOccurred(), line)
		if online {
			settings[cpu] = values
		}
	}
	return settings
}

// replaced returns the settings with others for some CPUs. A value of - stays as it is.
func replaced(settings map[int]string, cpus cpuset.Set, values string) map[int]string {
	settings = maps.Clone(settings)
	for cpu := range cpus.All() {
		is, wanted := strings.Fields(settings[cpu]), strings.Fields(values)
		for i := range wanted {
			if wanted[i] == "-" {
				wanted[i] = is[i]
			}
		}
		settings[cpu] = strings.Join(wanted, " ")
	}
	return settings
}

// frequencies are the highest ones, in kHz, that the frequency driver lists for each CPU.
type frequencies struct {
	driver          string
	middle, highest int // no other is between them
}

// frequenciesInKernel returns the frequencies of the CPUs, which are those of the first one.
func frequenciesInKernel(ctx context.Context) frequencies {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd "$1/cpu0/cpufreq" && cat scaling_driver && for kHz in $(cat scaling_available_frequencies); do echo "$kHz"; done | sort -n`, cpuFolder)
	Expect(err).NotTo(HaveOccurred())
	words := strings.Fields(text)
	if len(words) < 4 {
		lacks("the driver of frequencies of node %s lists %q, three frequencies are needed", node.name, words)
	}
	number := func(i int) int {
		kHz, err := strconv.Atoi(words[i])
		Expect(err).NotTo(HaveOccurred(), text)
		return kHz
	}
	return frequencies{words[0], number(len(words) - 2), number(len(words) - 1)}
}

// only returns the settings of these CPUs.
func only(settings map[int]string, cpus cpuset.Set) map[int]string {
	settings = maps.Clone(settings)
	maps.DeleteFunc(settings, func(cpu int, _ string) bool { return !cpus.Contains(cpu) })
	return settings
}

// expectGone waits for the end of a deleted pod and of its claim.
func expectGone(ctx context.Context, pod *corev1.Pod, before map[int]string) {
	GinkgoHelper()
	waitGone(ctx, pod)
	Expect(cpuSettings(ctx)).To(Equal(before), "settings of the CPUs after the claim")
}

func writeFrequency(ctx context.Context, cpu int, file, text string) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `echo "$2" >"$1"`, fmt.Sprintf("%s/cpu%d/cpufreq/%s", cpuFolder, cpu, file), text)
	Expect(err).NotTo(HaveOccurred())
}

// Files of the node for stopBefore, in a folder that the daemon has.
const (
	stopperPipe    = driverFolder + "/e2e-pipe"
	stopperBusybox = driverFolder + "/busybox-e2e" // its name begins with busybox: it runs the applet of its first argument
	nodeCheckpoint = "/proc/1/root" + driverFolder + "/checkpoint.json"
)

// stopBefore makes the daemon stop before it writes a file of a frequency policy, until it is
// killed: instead of the file, it opens a named pipe that has no reader.
func stopBefore(ctx context.Context, file string) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) {
		_, err := observer.Run(ctx, `cd /proc/1/root && rm -f ".$1" ".$2"`, stopperPipe, stopperBusybox)
		Expect(err).NotTo(HaveOccurred())
	})
	_, err := observer.Run(ctx, `set -e
		cp /bin/busybox "/proc/1/root$2"; mkfifo "/proc/1/root$1"
		for policy in "$4"/cpufreq/policy*; do
			nsenter -t "$(pidof "$5")" -m "$2" mount -o bind "$1" "/host/performance/sys/devices/system/cpu/cpufreq/${policy##*/}/$3"
		done`, stopperPipe, stopperBusybox, file, cpuFolder, driverProcess)
	Expect(err).NotTo(HaveOccurred())
}

// waitStopped waits until the daemon has come to what stopBefore has replaced.
func waitStopped(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func() (string, error) {
		return observer.Run(ctx, `cat /proc/$(pidof "$1")/task/*/wchan`, driverProcess)
	}).Should(Or(ContainSubstring("wait_for_partner"), ContainSubstring("fifo_open")), "where threads of the daemon sleep in the kernel")
}
