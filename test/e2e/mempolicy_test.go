package e2e

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The handlers of the rig. The last one ignores memory policies; see test/rig/README.md.
const newCrun, oldCrun = "crun", "crun-old"

var _ = Describe("memory policies of claims", ofKernel, Ordered, func() {
	var namespace string
	var pods map[string]*corev1.Pod

	// All at once: a pod takes seconds to start.
	BeforeAll(func(ctx context.Context) {
		if runtimeProcess(ctx) == crioProcess {
			Skip("CRI-O 1.34 passes no memory policy on, and the driver refuses such claims")
		}
		namespace = createNamespace(ctx, "mempolicy")
		core := oneCore(ctx)
		core.memoryBytes, core.zone = 64<<20, anyZone
		pods = map[string]*corev1.Pod{}
		for _, handler := range []string{"runc", newCrun, oldCrun} {
			needHandler(ctx, handler)
			pod := onRuntime(ctx, withoutRequests(claimPod(handler, core)), handler)
			pods[handler] = createConfigured(ctx, namespace, pod, core, `"memoryPolicy": "bind"`)
		}
		for handler, pod := range pods {
			pods[handler] = waitRunning(ctx, pod)
		}
	})

	It("are set by an OCI runtime that knows them", func(ctx context.Context) {
		for _, handler := range []string{"runc", newCrun} {
			pod := pods[handler]
			expectRuntime(ctx, pod, handler)
			process := inKernel(snapshot(ctx), pod)
			Expect(policyOf(ctx, process.PID)).To(Equal("bind=static:"+process.Mems.String()), "memory policy under %s", handler)
			expectMemoryPolicy(ctx, pod, metav1.ConditionTrue, "Requested")
		}
	})

	It("are seen to be ignored", func(ctx context.Context) {
		pod := pods[oldCrun]
		expectRuntime(ctx, pod, oldCrun)
		process := inKernel(snapshot(ctx), pod)
		Expect(policyOf(ctx, process.PID)).To(Equal("default"), "memory policy under %s", oldCrun)
		expectMemoryPolicy(ctx, pod, metav1.ConditionFalse, "Ignored")
		expectEvent(ctx, pod, "NUMAMemoryPolicyIgnored")
		expectExclusive(ctx, pod, "KernelPartition") // the CPUs are as they should be
		drift := func() string { _, stdout, stderr := ask(ctx, "drift"); return stdout + stderr }
		Eventually(ctx, drift).Should(ContainSubstring("policy-ignored"))
		deletePod(ctx, pod)
		Eventually(ctx, drift).ShouldNot(ContainSubstring("policy-ignored"))
	})
})

var _ = Describe("a container with the default seccomp profile and no capabilities", ofKernel, func() {
	It("has the memory policy of its class, and cannot set one", func(ctx context.Context) {
		if runtimeProcess(ctx) == crioProcess {
			Skip("CRI-O 1.34 passes no memory policy on, and the driver refuses such claims")
		}
		object, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		if object.Status.NodeInfo.Architecture != "amd64" {
			Skip("the program that asks is for amd64")
		}
		namespace, core := createNamespace(ctx, "unprivileged"), oneCore(ctx)
		core.zone = anyZone
		pods := map[string]*corev1.Pod{}
		for _, handler := range []string{"runc", newCrun} {
			needHandler(ctx, handler)
			pod := onRuntime(ctx, withoutRequests(claimPod(handler, core)), handler)
			pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", askForPolicy() + ` >/answer; exec /bin/sleep 2147483647`}
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
				SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				AllowPrivilegeEscalation: ptr.To(false),
			}
			createClaim(ctx, namespace, ofClass("bound.dra.numa", newClaim(pod.Name, core)))
			pods[handler] = createPod(ctx, namespace, pod)
		}
		for handler, pod := range pods {
			pod = waitRunning(ctx, pod)
			process := inKernel(snapshot(ctx), pod)
			answer := func(ctx context.Context) (string, error) {
				return observer.Run(ctx, `cat "/proc/$1/root/answer"`, fmt.Sprint(process.PID))
			}
			Eventually(ctx, answer).Should(HaveSuffix("\n"), "answer in the container under %s", handler)
			Expect(answer(ctx)).To(Equal("1\n"), "errno of set_mempolicy under %s, want EPERM", handler)
			Expect(policyOf(ctx, process.PID)).To(Equal("bind=static:"+process.Mems.String()), "memory policy under %s", handler)
			expectMemoryPolicy(ctx, pod, metav1.ConditionTrue, "Requested")
		}

		By("asking in a container that may set one")
		Expect(observer.Run(ctx, askForPolicy())).To(Equal("0\n"), "errno of set_mempolicy in the observer")
	})
})

// askForPolicy is a script that prints the errno of set_mempolicy(2). No command of busybox
// calls it, so the script writes a program, which takes the policy of the system.
func askForPolicy() string {
	const address = 0x400000
	var code bytes.Buffer
	for _, instruction := range []string{
		"\xb8\xee\x00\x00\x00", // mov $238, %eax: set_mempolicy
		"\x31\xff",             // xor %edi, %edi: MPOL_DEFAULT
		"\x31\xf6",             // xor %esi, %esi: no NUMA nodes
		"\x31\xd2",             // xor %edx, %edx
		"\x0f\x05",             // syscall
		"\xf7\xd8",             // neg %eax
		"\x89\xc7",             // mov %eax, %edi
		"\xb8\x3c\x00\x00\x00", // mov $60, %eax: exit
		"\x0f\x05",             // syscall
	} {
		code.WriteString(instruction)
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Phnum: 1,
	}
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: address}
	header.Ehsize, header.Phentsize = uint16(binary.Size(header)), uint16(binary.Size(segment))
	header.Phoff = uint64(header.Ehsize)
	header.Entry = address + header.Phoff + uint64(header.Phentsize)
	segment.Filesz = header.Entry - address + uint64(code.Len())
	segment.Memsz = segment.Filesz
	var program bytes.Buffer
	for _, part := range []any{header, segment, code.Bytes()} {
		Expect(binary.Write(&program, binary.LittleEndian, part)).To(Succeed())
	}
	var octal strings.Builder
	for _, b := range program.Bytes() {
		fmt.Fprintf(&octal, `\%03o`, b)
	}
	return `printf '` + octal.String() + `' >/ask && chmod 700 /ask && { /ask; echo $?; }`
}

// needHandler ends a spec on a node without the handler.
func needHandler(ctx context.Context, handler string) {
	GinkgoHelper()
	object, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	if !slices.ContainsFunc(object.Status.RuntimeHandlers, func(h corev1.NodeRuntimeHandler) bool { return h.Name == handler }) {
		lacks("node %s has no runtime handler %s", node.name, handler)
	}
}

// policyOf is the memory policy of a task: that of its stack, see numa_maps in proc(5).
func policyOf(ctx context.Context, pid int) string {
	GinkgoHelper()
	maps, err := observer.Run(ctx, `cat "/proc/$1/numa_maps"`, fmt.Sprint(pid))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`(?m)^[0-9a-f]+ ([^/\n]*) stack `).FindStringSubmatch(maps)
	Expect(found).To(HaveLen(2), "line of the stack in numa_maps of %d:\n%s", pid, maps)
	return found[1]
}

// expectMemoryPolicy waits for the condition MemoryPolicy of the only device of the pod's
// claim.
func expectMemoryPolicy(ctx context.Context, pod *corev1.Pod, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		claim := claimOf(ctx, pod)
		g.Expect(claim.Status.Devices).To(HaveLen(1), "devices in the status of claim %s", claim.Name)
		var said []string
		for _, condition := range claim.Status.Devices[0].Conditions {
			if condition.Type == "MemoryPolicy" {
				said = append(said, string(condition.Status)+" "+condition.Reason)
			}
		}
		g.Expect(said).To(ConsistOf(string(status)+" "+reason), "condition MemoryPolicy of claim %s", claim.Name)
	}).Should(Succeed())
}
