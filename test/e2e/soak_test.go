package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var (
	soakTime = flag.Duration("e2e.soak", 0, "how long to soak; 0 leaves it out")
	soakSeed = flag.Uint64("e2e.seed", 0, "seed of the soak; 0 takes one from the clock")
)

// soakPods bounds the claim pods of a soak: its node is small.
const soakPods = 5

// The spec is there only when it is asked for.
var _ = Describe("soak", func() {
	if *soakTime == 0 {
		return
	}
	It("gives no CPU twice and loses none, whatever is killed", func(ctx context.Context) {
		seed := *soakSeed
		if seed == 0 {
			seed = uint64(time.Now().UnixNano())
		}
		fmt.Printf("soak for %s: -e2e.seed %d\n", *soakTime, seed)
		k := soak{namespace: createNamespace(ctx, "soak"), random: rand.New(rand.NewPCG(seed, 0))}
		DeferCleanup(func(ctx context.Context) { Expect(observer.Unwatch(ctx)).To(Succeed()) })
		k.create(ctx) // the anchor: it stays, and what runs on its CPUs is watched
		k.check(ctx)
		for end := time.Now().Add(*soakTime); time.Now().Before(end); {
			k.step(ctx)
			k.check(ctx)
		}
		k.clear(ctx)
	})
})

// soak is what is known of the pods that it made.
type soak struct {
	namespace string
	random    *rand.Rand
	made      int
	pods      []soakPod
	steps     int
	watched   cpuset.Set
	container string   // the cgroup of the anchor's container at the last check
	owners    []string // cgroups of the anchor, one more after each time that its container was killed
	gap       bool     // nothing of the anchor ran for a moment, so its CPUs were everybody's
}

// soakPod is a pod of a claim that has its own name or, for the second pod of a
// claim, that of the first.
type soakPod struct {
	pod    *corev1.Pod
	claim  string
	cpus   int
	wholly bool // the partition is the pod's, as two containers of the claim's first pod use it
	split  bool // each of its two containers uses a request of the claim
}

// secondContainer is the name of the second container of a pod.
const secondContainer = "second"

// containers returns the containers that are compared with the kernel.
func (p soakPod) containers() []string {
	if p.split {
		return []string{containerName, secondContainer}
	}
	return []string{containerName}
}

// share names what a container has CPUs of: its claim, or its own request of the claim.
func (p soakPod) share(container string) string {
	if p.split {
		return p.claim + "/" + container
	}
	return p.claim
}

// step does one or two things that may happen on a node, at the same time.
func (k *soak) step(ctx context.Context) {
	k.steps++
	for range 1 + k.random.IntN(2) {
		switch action := k.random.IntN(10); {
		case action < 3 && len(k.pods) < soakPods:
			k.create(ctx)
		case action == 3 && len(k.pods) < soakPods:
			k.share(ctx)
		case action == 4 && len(k.pods) > 1:
			k.remove(ctx, 1+k.random.IntN(len(k.pods)-1))
		case action == 5:
			k.resize(ctx)
		default:
			k.kill(ctx)
		}
	}
}

func (k *soak) printf(format string, args ...any) {
	fmt.Printf("soak step %d: "+format+"\n", append([]any{k.steps}, args...)...)
}

// create makes a pod and its claim; now and then two containers use it, or a request of
// it each.
func (k *soak) create(ctx context.Context) {
	if len(k.pods) == 1 && k.random.IntN(2) == 0 {
		k.createSplit(ctx)
		return
	}
	threads := node.zones[0].threadsPerCore
	cores := 1
	if len(k.pods) < 2 { // with more there may be no zone with two
		cores += k.random.IntN(2)
	}
	want := request{cpus: int64(threads * cores), zone: anyZone}
	name := fmt.Sprintf("soak-%d", k.made)
	k.made++
	pod := claimPod(name, want)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("10m") // for resize
	wholly := k.random.IntN(3) == 0
	if wholly {
		pod.Spec.Containers = append(pod.Spec.Containers, claimContainer(secondContainer))
	}
	k.printf("create %s with %d CPUs, two containers: %t", name, want.cpus, wholly)
	pod = createClaimed(ctx, k.namespace, pod, want)
	k.pods = append(k.pods, soakPod{pod: pod, claim: name, cpus: int(want.cpus), wholly: wholly})
}

// createSplit makes a pod with a request of its claim for each of its containers.
func (k *soak) createSplit(ctx context.Context) {
	name := fmt.Sprintf("soak-%d", k.made)
	k.made++
	cpus := node.zones[0].threadsPerCore
	pod, claim := twoRequests(name, request{cpus: int64(cpus), zone: anyZone}) // the anchor may hold all of one zone
	second := claimContainer(secondContainer)
	pod.Spec.Containers[0].Resources.Claims[0].Request, second.Resources.Claims[0].Request = "a", "b"
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("10m") // for resize
	pod.Spec.Containers = append(pod.Spec.Containers, second)
	k.printf("create %s with %d CPUs for each of two containers", name, cpus)
	createClaim(ctx, k.namespace, claim)
	k.pods = append(k.pods, soakPod{pod: createPod(ctx, k.namespace, pod), claim: name, cpus: cpus, split: true})
}

// share makes a second pod for a claim; the anchor's stays its own.
func (k *soak) share(ctx context.Context) {
	if len(k.pods) < 2 || node.counts {
		return
	}
	first := k.pods[1+k.random.IntN(len(k.pods)-1)]
	if first.split {
		return
	}
	name := fmt.Sprintf("soak-%d", k.made)
	k.made++
	pod := withoutRequests(claimPod(name, request{}))
	pod.Spec.ResourceClaims[0].ResourceClaimName = &first.claim
	k.printf("create %s, which shares claim %s", name, first.claim)
	k.pods = append(k.pods, soakPod{pod: createPod(ctx, k.namespace, pod), claim: first.claim, cpus: first.cpus, wholly: first.wholly})
}

// remove deletes a pod, and its claim if it was the last. If it is deleted by force, it may
// still run when the next pod is created, and the kubelet may unprepare its claim meanwhile.
func (k *soak) remove(ctx context.Context, i int) {
	gone, byForce := k.pods[i], k.random.IntN(3) == 0
	k.printf("delete %s of claim %s, by force: %t", gone.pod.Name, gone.claim, byForce)
	k.pods = append(k.pods[:i:i], k.pods[i+1:]...)
	if byForce {
		deleteByForce(ctx, gone.pod)
	} else {
		deletePod(ctx, gone.pod)
	}
	for _, other := range k.pods {
		if other.claim == gone.claim {
			return
		}
	}
	claims := cluster.Kubernetes.ResourceV1().ResourceClaims(k.namespace)
	Expect(claims.Delete(ctx, gone.claim, metav1.DeleteOptions{})).To(Succeed())
}

// resize changes the CPU requests of a pod, which has the runtime update its container.
func (k *soak) resize(ctx context.Context) {
	chosen := k.pods[k.random.IntN(len(k.pods))]
	pod, err := readPod(ctx, chosen.pod)
	Expect(err).NotTo(HaveOccurred())
	if pod.Status.Phase != corev1.PodRunning || pod.Status.QOSClass == corev1.PodQOSBestEffort {
		return // the class of a pod cannot change
	}
	request := *resource.NewMilliQuantity(int64(10+k.random.IntN(100)), resource.DecimalSI)
	k.printf("resize %s to %s CPUs", pod.Name, request.String())
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = request
	_, err = cluster.Kubernetes.CoreV1().Pods(k.namespace).UpdateResize(ctx, pod.Name, pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// kill kills one of the programs that a claim depends on, or a container of it.
func (k *soak) kill(ctx context.Context) {
	switch victim := k.random.IntN(7); victim {
	case 0:
		chosen := k.pods[k.random.IntN(len(k.pods))].pod
		k.printf("kill a container of %s", chosen.Name)
		k.gap = k.gap || chosen.Name == k.pods[0].pod.Name
		Expect(observer.KillIn(ctx, string(chosen.UID), "sleep")).To(Succeed())
	case 1:
		k.printf("kill the next hook")
		Expect(observer.KillNext(ctx, keeperProcess, "pin", 20*time.Second)).To(Succeed())
	case 2:
		k.printf("kill the keeper")
		k.killCommand(ctx, keeperProcess, keeperArgument)
	case 3:
		k.breakPartition(ctx, k.random.IntN(len(k.pods)))
	default:
		name := []string{driverProcess, "kubelet", runtimeProcess(ctx)}[victim-4]
		k.printf("kill %s", name)
		k.killCommand(ctx, name, "")
	}
}

// breakPartition writes to the cgroup of a container, as another program might.
func (k *soak) breakPartition(ctx context.Context, i int) {
	broken := k.pods[i]
	process, err := snapshot(ctx).Container(broken.pod, containerName)
	if err != nil || broken.wholly {
		return // the container is only just starting, or the partition is the pod's
	}
	k.printf("break the partition of %s", broken.pod.Name)
	k.gap = k.gap || i == 0
	for _, write := range []struct{ file, value string }{{"cpuset.cpus.partition", "member"}, {"cpuset.cpus.exclusive", ""}} {
		if err := observer.WriteCgroup(ctx, process.Cgroup, write.file, write.value); err != nil {
			k.printf("the container has ended: %v", err)
		}
	}
}

// killCommand kills a program and waits until it is gone, and a kubelet is there
// that can be asked; one that is only just coming back stays.
func (k *soak) killCommand(ctx context.Context, name, argument string) {
	pids, err := observer.KillCommand(ctx, name, argument)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() error { return observer.Gone(ctx, pids) }).Should(Succeed(), "process %s", name)
}

// check waits until everything runs again, and compares all claims with the kernel.
func (k *soak) check(ctx context.Context) {
	GinkgoHelper()
	waitDriverReady(ctx)
	for _, made := range k.pods {
		waitRunning(ctx, made.pod)
	}
	Eventually(ctx, k.agrees).Should(Succeed(), "the kernel holds something else than the claims")
	s := snapshot(ctx)
	anchor := k.pods[0]
	process := inKernel(s, anchor.pod)
	// A kubelet that starts while the runtime does not answer makes the pod's sandbox again.
	k.gap = k.gap || process.Cgroup != k.container
	owner, held := process.Cgroup, process.CPUs
	if anchor.wholly {
		owner = path.Dir(owner)
	}
	if !k.watched.IsEmpty() {
		Expect(held.String()).To(Equal(k.watched.String()), "CPUs of the anchor")
		if !k.gap {
			expectNoStrangers(ctx, held, append(k.owners, owner)...)
		}
	}
	k.gap = false
	k.container, k.watched, k.owners = process.Cgroup, held, append(k.owners, owner)
	Expect(observer.Watch(ctx, held)).To(Succeed()) // anew, so that the record does not overflow
}

// agrees compares the pods with the kernel: each has its number of CPUs, those
// of one claim the same, those of two none in common, and a claim of one pod a
// partition that nobody else may run in.
func (k *soak) agrees(g Gomega, ctx context.Context) { //nolint:revive // the order that Gomega wants
	s, err := observer.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	users, held := map[string]int{}, map[string]cpuset.Set{}
	for i, made := range k.pods {
		for _, name := range made.containers() {
			users[made.share(name)]++
		}
		// Anew each time: a container that was killed is known by another id.
		k.pods[i].pod, err = readPod(ctx, made.pod)
		g.Expect(err).NotTo(HaveOccurred())
	}
	var taken cpuset.Set
	var owners []string
	for _, made := range k.pods {
		for _, name := range made.containers() {
			process, err := s.Container(made.pod, name)
			g.Expect(err).NotTo(HaveOccurred())
			share := made.share(name)
			g.Expect(process.CPUs.Size()).To(Equal(made.cpus), "container %s of pod %s may run on %s", name, made.pod.Name, process.CPUs)
			if before, ok := held[share]; ok {
				g.Expect(process.CPUs.String()).To(Equal(before.String()), "CPUs of pod %s of claim %s", made.pod.Name, made.claim)
			} else {
				g.Expect(process.CPUs.Overlaps(taken)).To(BeFalse(), "pod %s may run on %s, others have %s", made.pod.Name, process.CPUs, taken)
			}
			held[share] = process.CPUs
			taken = taken.Union(process.CPUs)
			if users[share] > 1 {
				g.Expect(process.Partition).To(Equal("member"), "partition of pod %s, whose claim has two pods", made.pod.Name)
				continue
			}
			group := process.Cgroup
			if made.wholly {
				group = path.Dir(group)
			}
			owners = append(owners, group)
			partition, err := observer.ReadCgroup(ctx, group, "cpuset.cpus.partition")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(partition).To(Equal("root"), "partition of pod %s, cgroup %s", made.pod.Name, group)
		}
	}
	allowed, err := observer.AllowedOutside(ctx, owners...)
	g.Expect(err).NotTo(HaveOccurred())
	for share, cpus := range held {
		for _, set := range allowed {
			g.Expect(users[share] == 1 && set.CPUs.Overlaps(cpus)).To(BeFalse(),
				"%d tasks, one is %s, may run on %s, of which claim %s has %s", set.Tasks, set.One, set.CPUs, share, cpus)
		}
	}
}

// clear deletes everything and checks that nothing is lost.
func (k *soak) clear(ctx context.Context) {
	GinkgoHelper()
	for len(k.pods) > 0 {
		k.remove(ctx, len(k.pods)-1)
	}
	waitDriverReady(ctx)
	s := snapshot(ctx)
	Eventually(ctx, func() string { // the last pods that were deleted by force run on for a while
		s = snapshot(ctx)
		return shared(s).String()
	}).Should(Equal(s.Online.String()), "CPUs of a pod without a claim when all claims are gone")
	Eventually(ctx, func() ([]string, error) { return observer.CDISpecsNaming(ctx, "numa-pin") }).Should(BeEmpty(), "CDI specs when all claims are gone")
	k.printf("all %d pods are gone, %s is whole", k.made, s.Online)
}
