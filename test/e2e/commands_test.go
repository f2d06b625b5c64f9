package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var kubectlNUMA = flag.String("e2e.kubectl-numa", "../../bin/kubectl-numa", "program whose commands the specs run")

// commandOf is a command of kubectl numa for the cluster.
func commandOf(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, *kubectlNUMA, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+*kubeconfig) // --from refuses the flag
	return command
}

// ask runs a command of kubectl numa against the cluster, and returns its exit code and
// what it prints.
func ask(ctx context.Context, args ...string) (exitCode int, stdout, stderr string) {
	GinkgoHelper()
	var out, faults strings.Builder
	command := commandOf(ctx, args...)
	command.Stdout, command.Stderr = &out, &faults
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		Fail(err.Error())
	}
	return command.ProcessState.ExitCode(), out.String(), faults.String()
}

// answer is what a command prints that must succeed.
func answer(ctx context.Context, args ...string) string {
	GinkgoHelper()
	exitCode, stdout, stderr := ask(ctx, args...)
	Expect(exitCode).To(BeZero(), "kubectl numa %s: %s%s", strings.Join(args, " "), stdout, stderr)
	return stdout
}

var _ = Describe("kubectl numa", Ordered, func() {
	var (
		pod, pending *corev1.Pod
		key          string // of the pod's claim
		held         kernel.Process
		bundle       string
	)

	BeforeAll(func(ctx context.Context) {
		if _, err := os.Stat(*kubectlNUMA); err != nil {
			lacks("no program to run: %v", err)
		}
		namespace := createNamespace(ctx, "commands")
		core := oneCore(ctx)
		counted := claimPod("held", core) // requests all that its claim holds: validate would miss the memory
		counted.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(someMemory, resource.BinarySI)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, counted, core))
		large := request{cpus: 1000, zone: anyZone}
		pending = createClaimed(ctx, namespace, claimPod("large", large), large)
		key = namespace + "/" + claimOf(ctx, pod).Name
		held = inKernel(snapshot(ctx), pod)
		bundle = filepath.Join(GinkgoT().TempDir(), "bundle.tar.gz")
	})

	It("shows the CPUs that the kernel gave to a claim", func(ctx context.Context) {
		var status struct {
			Claims []struct {
				Namespace, Name string
				Shares          []struct{ CPUs, Partition string }
			}
			Pending []struct{ Name string }
		}
		Eventually(ctx, func(g Gomega) { // the driver writes the status after it has prepared the claim
			g.Expect(json.Unmarshal([]byte(answer(ctx, "status", "-o", "json")), &status)).To(Succeed())
			cpus := map[string]string{}
			for _, claim := range status.Claims {
				for _, share := range claim.Shares {
					cpus[claim.Namespace+"/"+claim.Name] = share.CPUs + " " + share.Partition
				}
			}
			g.Expect(cpus).To(HaveKeyWithValue(key, held.CPUs.String()+" "+held.Partition))
		}).Should(Succeed())
		Expect(status.Pending).To(ContainElement(HaveField("Name", pending.Name)))
	})

	It("finds that the records of the node agree", func(ctx context.Context) {
		Eventually(ctx, func() string { _, stdout, stderr := ask(ctx, "drift"); return stdout + stderr }).Should(Equal("no problems found\n"))
	})

	It("finds nothing wrong with the cluster, and asks the node", func(ctx context.Context) {
		Eventually(ctx, func() string { // what earlier specs have left goes away
			exitCode, stdout, stderr := ask(ctx, "validate", "--ask-nodes")
			return fmt.Sprint(exitCode, "\n", stdout, stderr)
		}).Should(HavePrefix("0\n"))
	})

	It("says why a pod is pending, and where another would go", func(ctx context.Context) {
		Expect(answer(ctx, "explain", "pod", pending.Name, "-n", pending.Namespace)).To(ContainSubstring("cpu"))
		exitCode, stdout, _ := ask(ctx, "simulate")
		Expect(stdout).To(ContainSubstring(pending.Namespace + "/" + pending.Name + " has no node"))
		Expect(exitCode).To(Equal(1))
	})

	It("says which versions and features there are", func(ctx context.Context) {
		release, err := observer.Run(ctx, "uname -r")
		Expect(err).NotTo(HaveOccurred())
		Expect(answer(ctx, "version")).To(MatchRegexp(`(?m)^kernel +` + regexp.QuoteMeta(strings.TrimSpace(release)) + ` .* 1$`))
		Expect(answer(ctx, "features")).To(ContainSubstring("shared-zones"))
	})

	It("gathers a bundle that says the same without the cluster", func(ctx context.Context) {
		answer(ctx, "gather", "--file", bundle)
		Expect(answer(ctx, "status", "--from", bundle)).To(ContainSubstring(key))
		Expect(answer(ctx, "drift", "--from", bundle)).To(Equal("no problems found\n"))
		topology := answer(ctx, "topology", "--from", bundle, "--node", node.name, "-o", "json")
		var machine struct {
			Nodes []struct{ ID int }
		}
		Expect(json.Unmarshal([]byte(topology), &machine)).To(Succeed())
		Expect(machine.Nodes).To(HaveLen(len(snapshot(ctx).Zones)))
	})

	It("serves pages that draw the node's CPUs", func(ctx context.Context) {
		page := pageOf(ctx, "/nodes/"+node.name)
		Expect(page).To(ContainSubstring(pod.Name))
		Expect(page).To(ContainSubstring("CPUs as text"))
	})
})

// pageOf serves the pages of kubectl numa for a moment, and returns one.
func pageOf(ctx context.Context, path string) string {
	GinkgoHelper()
	command := commandOf(ctx, "ui", "--layout", "--listen", "127.0.0.1:0")
	command.Stderr = GinkgoWriter
	stdout, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		Expect(command.Wait()).To(Succeed())
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	cookies, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	browser := http.Client{Jar: cookies} // the address has a token, which becomes a cookie
	get := func(url string) (text string, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		response, err := browser.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(address), "/?")
	Eventually(ctx, func() (string, error) { return get(strings.TrimSpace(address)) }).Should(ContainSubstring(node.name))
	page, err := get(first + path)
	Expect(err).NotTo(HaveOccurred())
	return page
}
