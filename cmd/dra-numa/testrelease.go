package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/release"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// How often the cluster is read again until it is as it should be.
const (
	releasePeriod  = 2 * time.Second
	releaseTimeout = time.Minute // of one look at the cluster
)

// releaseFlags are those of the commands that hooks of the chart run.
type releaseFlags struct {
	kubeconfig, namespace, selector string
	daemonSet, cleaner              string // DaemonSets: of the daemon, and of what cleans nodes
	timeout                         time.Duration

	more func(*flag.FlagSet) // adds those of one command; nil if it has none
}

// parse reads the flags. Those that are needed have no default: the chart's values decide.
func (f *releaseFlags) parse(c cli.Call, needed ...string) error {
	flags := c.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty: that of the pod's service account")
	flags.StringVar(&f.namespace, "namespace", "", "`namespace` of the release")
	flags.StringVar(&f.selector, "selector", "", "`labels` of the pods that are asked for")
	flags.StringVar(&f.daemonSet, "daemonset", "", "`name` of the DaemonSet of the driver")
	flags.StringVar(&f.cleaner, "cleaner", "", "`name` of the DaemonSet that cleans the nodes")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how `long` to wait")
	if f.more != nil {
		f.more(flags)
	}
	return c.ParseAll(flags, append([]string{"namespace"}, needed...)...)
}

// releaseJob is what a Job of the chart does.
type releaseJob func(ctx context.Context, client kubernetes.Interface, f releaseFlags, stdout io.Writer) error

// run reads the flags of a command, and does its job.
func (job releaseJob) run(ctx context.Context, c cli.Call, needed ...string) error {
	var f releaseFlags
	if err := f.parse(c, needed...); err != nil {
		return err
	}
	client, err := newReleaseClient(f.kubeconfig)
	if err != nil {
		return err
	}
	return job(ctx, client, f, c.Stdout)
}

// runTestRelease is the test of helm test.
func runTestRelease(ctx context.Context, c cli.Call) error {
	return releaseJob(testRelease).run(ctx, c, "selector")
}

func testRelease(ctx context.Context, client kubernetes.Interface, f releaseFlags, stdout io.Writer) error {
	daemons := 0
	err := waitForRelease(ctx, f.timeout, func(ctx context.Context) ([]string, error) {
		pods, err := client.CoreV1().Pods(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: f.selector})
		if err != nil {
			return nil, err
		}
		all, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=" + driver.Name})
		if err != nil {
			return nil, err
		}
		daemons = len(pods.Items)
		return release.Unready(pods.Items, all.Items), nil
	})
	if err != nil {
		return fmt.Errorf("test the release: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%d daemons are ready, and the API server has the ResourceSlices of their nodes.\n", daemons)
	return err
}

// waitForRelease asks until there are no problems, at least once and no longer than timeout.
// The error names the last ones.
func waitForRelease(ctx context.Context, timeout time.Duration, ask func(context.Context) (problems []string, err error)) error {
	end := time.Now().Add(timeout)
	for {
		problems, err := askOnce(ctx, ask)
		if err == nil {
			err = oneLine(problems)
		}
		if err == nil || ctx.Err() != nil || time.Until(end) < releasePeriod {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(releasePeriod):
		}
	}
}

func askOnce(ctx context.Context, ask func(context.Context) (problems []string, err error)) (problems []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	return ask(ctx)
}
