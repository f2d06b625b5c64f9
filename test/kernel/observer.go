// Package kernel reads from the kernel of a node what its pods may use: the
// CPUs and memory nodes of every process, the cpuset of its cgroup and the
// machine's zones and cores. It believes neither the driver nor the kubelet:
// everything comes from /proc and /sys through a privileged pod on the node.
//
// That pod shares the node's process ids, holds no claim and is subject to cpusets like
// any other: what it may use itself is what a pod without a claim may use.
package kernel

import (
	"context"
	_ "embed" // snapshot.sh
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// How long an observer pod may take to run, on a node whose pace is not known yet, and
// until it runs again when the node restarts, at pace 1: the rig starts a machine that
// does not boot again.
const (
	startTimeout   = 10 * time.Minute
	restartTimeout = 10 * time.Minute
)

// runTimeout is how long one script may take, with a connection if there is none: a lost
// one must fail, not hang. connectPeriod is how long to wait until the next attempt to
// connect, leaveTimeout how long the shell may take to end.
const (
	runTimeout    = time.Minute
	connectPeriod = time.Second
	leaveTimeout  = 10 * time.Second
)

// cdiFolder is where the node's CDI specs are mounted in the observer: a mount,
// because /var/run is a symbolic link on most hosts.
const cdiFolder = "/host/cdi"

//go:embed snapshot.sh
var snapshotScript string

// Observer is a pod that reads the kernel of the node it runs on.
type Observer struct {
	// Pace lengthens how long one script may take, see [Observer.Measure].
	Pace Pace

	client  kubernetes.Interface
	config  *rest.Config
	pod     *corev1.Pod
	boot    string     // id of the node's boot, as far as is known
	running sync.Mutex // one script at a time
	session *session
}

// Start runs an observer on a node and waits until it runs. The image needs busybox with
// its commands in /bin. Remove must be called after use, also after an error.
func Start(ctx context.Context, client kubernetes.Interface, config *rest.Config, namespace, node, image string) (*Observer, error) {
	pods := client.CoreV1().Pods(namespace)
	pod, err := pods.Create(ctx, observerPod(node, image), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create observer of node %s: %w", node, err)
	}
	o := &Observer{Pace: 1, client: client, config: config, pod: pod}
	if err := o.wait(ctx, 0, startTimeout); err != nil {
		return o, err
	}
	o.boot, err = o.bootID(ctx)
	return o, err
}

func (o *Observer) bootID(ctx context.Context) (string, error) {
	return o.Run(ctx, "cat /proc/sys/kernel/random/boot_id")
}

// HasRebooted reports whether the node has started again without [Observer.Reboot].
func (o *Observer) HasRebooted(ctx context.Context) (bool, error) {
	boot, err := o.bootID(ctx)
	return err == nil && boot != o.boot, err
}

// wait waits until the observer's container runs and has been restarted so often.
func (o *Observer) wait(ctx context.Context, restarts int32, within time.Duration) error {
	pods := o.client.CoreV1().Pods(o.pod.Namespace)
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		current, err := pods.Get(ctx, o.pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		o.pod = current
		for _, status := range current.Status.ContainerStatuses {
			return status.State.Running != nil && status.RestartCount >= restarts, nil
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for observer %s of node %s: %w", o.pod.Name, o.pod.Spec.NodeName, err)
	}
	return nil
}

// Reboot restarts the node without a word to anything on it, and waits until the
// observer runs there again.
func (o *Observer) Reboot(ctx context.Context) error {
	if err := o.wait(ctx, 0, o.Pace.Of(restartTimeout)); err != nil { // its container may have restarted
		return err
	}
	restarts := int32(1)
	for _, status := range o.pod.Status.ContainerStatuses {
		restarts += status.RestartCount
	}
	_, err := o.Run(ctx, `sync; { sleep 1; echo b >/proc/sysrq-trigger; } </dev/null >/dev/null 2>&1 &`)
	if err != nil {
		return fmt.Errorf("reboot node %s: %w", o.pod.Spec.NodeName, err)
	}
	if err := o.wait(ctx, restarts, o.Pace.Of(restartTimeout)); err != nil {
		return err
	}
	o.boot, err = o.bootID(ctx)
	return err
}

func observerPod(node, image string) *corev1.Pod {
	var noGrace int64
	yes, folder := true, corev1.HostPathDirectoryOrCreate
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kernel-observer-", Labels: map[string]string{"app": "kernel-observer"}},
		Spec: corev1.PodSpec{
			NodeName:                      node, // past the scheduler: it may be what is tested
			HostPID:                       true,
			TerminationGracePeriodSeconds: &noGrace,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name:            "observer",
				Image:           image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"/bin/sleep", "2147483647"},
				SecurityContext: &corev1.SecurityContext{Privileged: &yes},
				VolumeMounts:    []corev1.VolumeMount{{Name: "cdi", MountPath: cdiFolder, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "cdi", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/var/run/cdi", Type: &folder},
			}}},
		},
	}
}

// Remove deletes the observer's pod. It is not an error if it is gone.
func (o *Observer) Remove(ctx context.Context) error {
	if o.session.open() {
		_, _ = o.Run(ctx, watchScript, "end")         // else an instance of the tracer stays
		_, _ = o.Run(ctx, leaveScript, sessionCgroup) // and an empty cgroup
		within, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		o.session.leave(within)
	}
	err := o.client.CoreV1().Pods(o.pod.Namespace).Delete(ctx, o.pod.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete observer %s: %w", o.pod.Name, err)
	}
	return nil
}

// Snapshot reads everything once.
func (o *Observer) Snapshot(ctx context.Context) (Snapshot, error) {
	text, err := o.Run(ctx, snapshotScript)
	if err != nil {
		return Snapshot{}, err
	}
	return parseSnapshot(text)
}

// Self returns the observer's own process: that of a pod without a claim.
func (o *Observer) Self(s Snapshot) (Process, error) {
	return s.Container(o.pod, "observer")
}

// Run runs a shell script on the node, as root and with the arguments $1, $2
// and so on, and returns its standard output. Scripts run one after the other, in a
// shell that a lost connection ends; the next call starts another.
func (o *Observer) Run(ctx context.Context, script string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Pace.Of(runTimeout), fmt.Errorf("no answer within %s", o.Pace.Of(runTimeout)))
	defer cancel()
	o.running.Lock()
	defer o.running.Unlock()
	for !o.session.open() {
		if err := o.connect(ctx); err != nil {
			return "", fmt.Errorf("run in observer of node %s: %w", o.pod.Spec.NodeName, err)
		}
	}
	stdout, err := o.session.run(ctx, withArguments(script, args))
	if err != nil {
		return "", fmt.Errorf("run in observer of node %s: %w", o.pod.Spec.NodeName, err)
	}
	return stdout, nil
}

// connect starts a session. While kubelet or container runtime are away, which
// tests kill, it tries again: to start one changes nothing on the node.
func (o *Observer) connect(ctx context.Context) error {
	for {
		s, err := newSession(ctx, o.stream)
		if err == nil {
			o.session = s
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-time.After(connectPeriod):
		}
	}
}

// stream runs the session's shell in the observer's container.
func (o *Observer) stream(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	request := o.client.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(o.pod.Namespace).Name(o.pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Command: []string{"/bin/sh", "-c", sessionScript, "observer", sessionCgroup, sessionFolder}, Stdin: true, Stdout: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(o.config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout})
}
