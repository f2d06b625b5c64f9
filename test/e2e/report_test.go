package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var reports = flag.String("e2e.reports", filepath.Join(os.TempDir(), "dra-numa-e2e"), "folder for what a failed spec leaves: a folder each")

// How much of it a failure prints; all of it is in the files.
const (
	shownPods      = 10
	shownEvents    = 8
	shownLogLines  = 8
	shownReason    = 15
	fileMode       = 0o644
	folderMode     = 0o755
	reportPeriod   = pollInterval
	longestMessage = 300
	longestName    = 100
)

// After a failure: in files everything that a person would ask for next, and on the
// screen what is most likely needed. It runs before the spec's namespace is removed.
var _ = JustAfterEach(func(ctx context.Context) {
	if !CurrentSpecReport().Failed() || observer == nil {
		return
	}
	r := report{folder: reportFolder(CurrentSpecReport())}
	r.objects(ctx)
	r.driverLogs(ctx)
	answers := r.processes(ctx)
	GinkgoWriter.Printf("All pods, claims, events, logs of the driver and processes are in %s\n", r.folder)
	if !answers { // every other spec would fail for that, too
		abort("the node does not answer any more")
	}
	if rebooted, err := observer.HasRebooted(ctx); err == nil && rebooted { // its kernel or its emulator has crashed
		abort("the node has rebooted by itself: what the rig prints about its machine says why")
	}
})

// abort ends the suite. In the report, that takes the place of the failure of this spec.
func abort(why string) {
	AbortSuite(why + "\nthe spec has failed with: " + CurrentSpecReport().FailureMessage())
}

// One node, because Ginkgo runs those of several files in the files' order, and a log of
// which only the end is kept must have the failures.
var _ = ReportAfterSuite("profile and failures", func(suite Report) {
	printProfile(suite)
	printFailures(suite)
})

// printFailures prints which specs failed, why, and where the rest is.
func printFailures(suite Report) {
	failed := suite.SpecReports.WithState(types.SpecStateFailureStates)
	if len(failed) == 0 {
		return
	}
	fmt.Printf("\n%d of %d specs failed:\n", len(failed), suite.PreRunStats.SpecsThatWillRun)
	for _, spec := range failed {
		fmt.Printf("\n%s\n  at %s, after %.0f s\n", cutText(spec.FullText(), longestMessage), spec.FailureLocation(), spec.RunTime.Seconds())
		for _, line := range head(strings.Split(strings.TrimSpace(spec.FailureMessage()), "\n"), shownReason) {
			fmt.Printf("    %s\n", line)
		}
		fmt.Printf("  more: %s\n", reportFolder(spec))
	}
}

var unfitForPath = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// reportFolder is where the files of a spec are.
func reportFolder(spec SpecReport) string {
	name := strings.Trim(unfitForPath.ReplaceAllString(spec.FullText(), "-"), "-")
	return filepath.Join(*reports, name[:min(len(name), longestName)])
}

// report is what is known after a failure.
type report struct {
	folder string
}

// write writes a file of the report. One that cannot be written is said on the screen.
func (r report) write(name, text string) {
	err := os.MkdirAll(r.folder, folderMode)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.folder, name), []byte(text), fileMode)
	}
	if err != nil {
		GinkgoWriter.Println("write report:", err)
	}
}

// objects reports pods, claims and events of the suite's namespaces and of the driver's.
func (r report) objects(ctx context.Context) {
	namespaces, err := cluster.Kubernetes.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		GinkgoWriter.Println("list namespaces:", err)
		return
	}
	var pods, claims, events strings.Builder
	var states, warnings []string
	for _, namespace := range namespaces.Items {
		name := namespace.Name
		if name != *driverNamespace && namespace.GenerateName == "" {
			continue
		}
		if list, err := listPods(ctx, name); err == nil {
			for i := range list {
				dump(&pods, &list[i])
				if !running(&list[i]) {
					states = append(states, "pod "+name+"/"+list[i].Name+": "+progress(&list[i]))
				}
			}
		}
		if list, err := cluster.Kubernetes.ResourceV1().ResourceClaims(name).List(ctx, metav1.ListOptions{}); err == nil {
			for i := range list.Items {
				dump(&claims, &list.Items[i])
			}
		}
		if list, err := cluster.Kubernetes.CoreV1().Events(name).List(ctx, metav1.ListOptions{}); err == nil {
			for _, event := range list.Items {
				line := fmt.Sprintf("%s %s %s/%s: %s: %s", event.LastTimestamp.Format("15:04:05"),
					event.Type, name, event.InvolvedObject.Name, event.Reason, event.Message)
				fmt.Fprintln(&events, line)
				if event.Type != corev1.EventTypeNormal {
					warnings = append(warnings, line)
				}
			}
		}
	}
	r.write("pods.yaml", pods.String())
	r.write("claims.yaml", claims.String())
	r.write("events.txt", events.String())
	show("pods that do not run", head(states, shownPods), len(states))
	show("last warnings", tail(warnings, shownEvents), len(warnings))
}

// driverLogs reports the logs of the driver's containers, of this and the last run.
func (r report) driverLogs(ctx context.Context) {
	pods, err := driverPods(ctx)
	if err != nil {
		GinkgoWriter.Println("list driver pods:", err)
		return
	}
	for _, pod := range pods {
		for _, container := range pod.Spec.Containers {
			for suffix, previous := range map[string]bool{"-previous": true, "": false} {
				log, err := cluster.Kubernetes.CoreV1().Pods(pod.Namespace).
					GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous}).DoRaw(ctx)
				if err != nil {
					continue // there is no previous run, for one
				}
				r.write(pod.Name+"-"+container.Name+suffix+".log", string(log))
				if lines := complaints(string(log)); !previous {
					show("last complaints of "+container.Name+" of pod "+pod.Name, tail(lines, shownLogLines), len(lines))
				}
			}
		}
	}
}

// complaints are the lines of a log in klog's format that are warnings or errors.
func complaints(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "W") || strings.HasPrefix(line, "E") || strings.HasPrefix(line, "F") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// processes reports what the kernel says, unless the node does not answer.
func (r report) processes(ctx context.Context) (answers bool) {
	var s kernel.Snapshot
	var last error
	err := wait.PollUntilContextTimeout(ctx, reportPeriod, limit(eventuallyTimeout), true, func(ctx context.Context) (done bool, err error) {
		s, last = observer.Snapshot(ctx)
		return last == nil, nil
	})
	if err != nil {
		GinkgoWriter.Println("snapshot of the node:", errors.Join(err, last))
		return false
	}
	var text strings.Builder
	for _, process := range s.Processes {
		fmt.Fprintf(&text, "process %d cpus %s mems %s exclusive %s partition %s in %s\n",
			process.PID, process.CPUs, process.Mems, process.ExclusiveCPUs, process.Partition, process.Cgroup)
	}
	r.write("processes.txt", text.String())
	return true
}

// progress is how far a pod has come, in a line.
func progress(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	if pod.DeletionTimestamp != nil {
		words = append(words, "is being deleted since "+pod.DeletionTimestamp.Format("15:04:05"))
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			words = append(words, condition.Reason+": "+condition.Message)
		}
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		switch state := status.State; {
		case state.Waiting != nil:
			words = append(words, strings.TrimSuffix(status.Name+" waits: "+state.Waiting.Reason+": "+state.Waiting.Message, ": "))
		case state.Terminated != nil:
			words = append(words, fmt.Sprintf("%s has ended with %d: %s", status.Name, state.Terminated.ExitCode, state.Terminated.Reason))
		}
		if status.RestartCount > 0 {
			words = append(words, fmt.Sprintf("%s was restarted %d times", status.Name, status.RestartCount))
		}
	}
	return cutText(strings.Join(words, "; "), longestMessage)
}

// running reports whether all containers of a pod run.
func running(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// dump adds an object as a YAML document.
func dump(to *strings.Builder, object metav1.Object) {
	object.SetManagedFields(nil)
	text, err := yaml.Marshal(object)
	if err != nil {
		text = fmt.Appendf(nil, "# %v\n", err)
	}
	fmt.Fprintf(to, "---\n%s", text)
}

// show prints some lines of many.
func show(what string, lines []string, of int) {
	if of == 0 {
		return
	}
	GinkgoWriter.Printf("%s (%d of %d):\n", what, len(lines), of)
	for _, line := range lines {
		GinkgoWriter.Printf("  %s\n", cutText(line, longestMessage))
	}
}

func head(lines []string, most int) []string { return lines[:min(most, len(lines))] }

func tail(lines []string, most int) []string { return lines[max(0, len(lines)-most):] }

// cutText is the beginning of a text that is too long.
func cutText(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// names are those of objects: a failure that prints whole objects hides its reason.
func names[T any, P interface {
	*T
	metav1.Object
}](items []T) (names []string) {
	for i := range items {
		names = append(names, P(&items[i]).GetName())
	}
	return names
}

func podNames(ctx context.Context, namespace string) ([]string, error) {
	pods, err := listPods(ctx, namespace)
	return names(pods), err
}

func claimNames(ctx context.Context, namespace string) ([]string, error) {
	list, err := cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	return names[resourceapi.ResourceClaim](list.Items), err
}

// A spec that changes the machine must not run on a machine of others: make kind-test leaves
// out those with the label.
func TestSpecsThatChangeTheMachineSaySo(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	changes := regexp.MustCompile(`observer\.(Reboot|SetClock|SetOnline|SetHugepages)\(`)
	labels := regexp.MustCompile(`\b(ofMachine|withCache|withPower)\b, (Ordered, )?func`)
	found := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if changes.Match(text) {
			found++
			if !labels.Match(text) {
				t.Errorf("%s changes the machine, and no spec in it has a label for that", name)
			}
		}
	}
	if found < 5 {
		t.Errorf("found only %d files", found)
	}
}

func TestProgressSaysHowFarAPodHasCome(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes",
		}},
		ContainerStatuses: []corev1.ContainerStatus{
			{
				Name: "main", RestartCount: 2,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: "CreateContainerError", Message: "numa-pin: error",
				}},
			},
			{
				Name:  "car",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}},
			},
		},
	}}
	const want = "Pending; Unschedulable: 0/1 nodes; main waits: CreateContainerError: numa-pin: error; " +
		"main was restarted 2 times; car has ended with 137: Error"
	if got := progress(pod); got != want {
		t.Errorf("progress = %q\nwant       %q", got, want)
	}
}
