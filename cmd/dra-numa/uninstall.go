package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/release"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// runUninstall runs one of the commands that remove a release.
func runUninstall(ctx context.Context, c cli.Call) error {
	const args = "--namespace NAMESPACE --daemonset NAME [flags]"
	return cli.Program{Name: c.Name, Commands: []cli.Command{
		{Name: "check", Args: args, About: uninstallAbout, Run: func(ctx context.Context, c cli.Call) error {
			return releaseJob(uninstallCheck).run(ctx, c, "daemonset")
		}},
		{Name: "node", Args: args, About: uninstallAbout, Run: runUninstallNode},
		{Name: "finish", Args: args, About: uninstallAbout, Run: func(ctx context.Context, c cli.Call) error {
			return releaseJob(uninstallFinish).run(ctx, c, "daemonset", "cleaner", "selector")
		}},
	}}.Run(ctx, c.Args, c.Stdout)
}

// uninstallRule is the DeviceTaintRule that holds while the release is uninstalled. Its name
// does not depend on the release: whichever comes next has to find it.
const uninstallRule = "dra-driver-numa-uninstall"

// uninstallCheck has the scheduler allocate no more claims, and waits until no pod uses a
// claim of the driver. If it succeeds, no claim is allocated until uninstallFinish. It taints
// the devices with a rule: the daemons would publish deleted slices again. Without a DaemonSet
// they do not: an uninstallation was interrupted.
func uninstallCheck(ctx context.Context, client kubernetes.Interface, f releaseFlags, stdout io.Writer) error {
	daemons, err := client.AppsV1().DaemonSets(f.namespace).Get(ctx, f.daemonSet, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = fmt.Fprintf(stdout, "DaemonSet %s/%s is gone.\n", f.namespace, f.daemonSet)
	case err == nil && !release.RunsHooks(daemons):
		err = fmt.Errorf("DaemonSet %s/%s is installed neither by Helm nor by Argo CD, so nobody uninstalls it: %s", f.namespace, f.daemonSet, leaveHooksOut)
	case err == nil:
		err = stopAllocation(ctx, client, stdout)
	}
	if err != nil {
		return err
	}
	err = waitForRelease(ctx, f.timeout, func(ctx context.Context) ([]string, error) {
		claims, err := client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return release.Holders(claims.Items, driver.Name), nil
	})
	if err != nil {
		err = fmt.Errorf("uninstall the driver: delete these pods first, which could not end without it: %w", err)
		return errors.Join(err, resumeAllocation(ctx, client))
	}
	_, err = fmt.Fprintln(stdout, "No pod uses a claim of the driver.")
	return err
}

// leaveHooksOut is what to do if the hooks were applied as any other object.
const leaveHooksOut = "leave the hooks of the chart out, with helm template --no-hooks or skipHooks"

// stopAllocation creates the rule, and waits until the scheduler has heard of it: a claim
// that it allocates at the same time is seen by who looks afterwards.
func stopAllocation(ctx context.Context, client kubernetes.Interface, stdout io.Writer) error {
	name := driver.Name
	rule := &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: uninstallRule},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: &name},
			Taint:          resourceapi.DeviceTaint{Key: deviceclasses.TaintUninstall, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
	_, err := client.ResourceV1().DeviceTaintRules().Create(ctx, rule, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = fmt.Fprintln(stdout, "The cluster serves no DeviceTaintRules: a pod that is created meanwhile can still get a claim.")
		return err
	case err != nil && !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create DeviceTaintRule %s: %w", uninstallRule, err)
	}
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), resumeAllocation(ctx, client))
	case <-time.After(releasePeriod):
		return nil
	}
}

// resumeAllocation deletes the rule, also at the end of ctx.
func resumeAllocation(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := client.ResourceV1().DeviceTaintRules().Delete(ctx, uninstallRule, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("no claim of the driver is allocated until DeviceTaintRule %s is deleted: %w", uninstallRule, err)
	}
	return nil
}

// uninstallFinish waits for the DaemonSet that cleans the nodes, then deletes the slices of
// the driver. No daemon may run any more: it would publish them again. So it does nothing
// while the driver is installed. The rule goes in any case, because the next installation would
// not work with it.
func uninstallFinish(ctx context.Context, client kubernetes.Interface, f releaseFlags, stdout io.Writer) (err error) {
	defer func() { err = errors.Join(err, resumeAllocation(ctx, client)) }()
	installed := false
	var nodes int32
	var unclean []release.UncleanNode
	err = waitForRelease(ctx, f.timeout, func(ctx context.Context) ([]string, error) {
		var err error
		if installed, err = isInstalled(ctx, client, f); err != nil || installed {
			return nil, err
		}
		cleaners, err := client.AppsV1().DaemonSets(f.namespace).Get(ctx, f.cleaner, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		pods, err := client.CoreV1().Pods(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: f.selector})
		if err != nil {
			return nil, err
		}
		nodes = cleaners.Status.DesiredNumberScheduled
		problems, left := release.Unclean(cleaners, pods.Items)
		unclean = left
		return problems, nil
	})
	if err != nil {
		return fmt.Errorf("clean the nodes: %w%s", err, reasons(ctx, client, f.namespace, unclean))
	}
	if installed {
		return fmt.Errorf("DaemonSet %s/%s is installed: %s", f.namespace, f.daemonSet, leaveHooksOut)
	}
	deleted, err := deleteSlices(ctx, client)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Nothing of the driver is left on the %d nodes where its pods can run. Deleted %d ResourceSlices.\n", nodes, deleted)
	return err
}

// reasonBytes limits the line of each pod.
const reasonBytes = 1 << 10

// reasons returns the last lines of the logs of the pods that clean nodes. Helm deletes
// these pods when the Job fails, and the logs with them.
func reasons(ctx context.Context, client kubernetes.Interface, namespace string, unclean []release.UncleanNode) (text string) {
	options := corev1.PodLogOptions{TailLines: new(int64(1)), LimitBytes: new(int64(reasonBytes))}
	for _, node := range unclean {
		line, err := client.CoreV1().Pods(namespace).GetLogs(node.Pod, &options).DoRaw(ctx)
		if err != nil {
			line = []byte(err.Error())
		}
		text += fmt.Sprintf("; node %s: %s", node.Node, message.OneLine(strings.TrimSpace(string(line))))
	}
	return text
}

// deleteSlices deletes those that the kubelets have not deleted yet.
func deleteSlices(ctx context.Context, client kubernetes.Interface) (deleted int, err error) {
	all, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=" + driver.Name})
	if err != nil {
		return 0, err
	}
	for i := range all.Items {
		if all.Items[i].Spec.Driver != driver.Name {
			continue
		}
		err := client.ResourceV1().ResourceSlices().Delete(ctx, all.Items[i].Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return deleted, fmt.Errorf("delete ResourceSlice %s: %w", all.Items[i].Name, err)
		}
		deleted++
	}
	return deleted, nil
}

// isInstalled is whether the DaemonSet of the daemon exists and is not being deleted. Then
// its pods come back after each end.
func isInstalled(ctx context.Context, client kubernetes.Interface, f releaseFlags) (bool, error) {
	daemons, err := client.AppsV1().DaemonSets(f.namespace).Get(ctx, f.daemonSet, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && daemons.DeletionTimestamp == nil, err
}

func runUninstallNode(ctx context.Context, call cli.Call) error {
	c := cleaner{}
	f := releaseFlags{more: c.flags}
	if err := f.parse(call, "daemonset"); err != nil {
		return err
	}
	client, err := newReleaseClient(f.kubeconfig)
	if err != nil {
		return err
	}
	stop, err := serve(c.listen, &c.state, nil, func(err error) { klog.FromContext(ctx).Error(err, "Serving health failed") })
	if err != nil {
		return err
	}
	defer stop()
	c.run(ctx, func(ctx context.Context) (bool, error) { return isInstalled(ctx, client, f) })
	return nil
}

// oneLine joins problems.
func oneLine(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(problems, "; "))
}
