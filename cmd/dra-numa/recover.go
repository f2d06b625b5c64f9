package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

const (
	// claimsTimeout bounds the questions about the claims on record: a claim
	// whose answer is missing keeps what it has.
	claimsTimeout = 30 * time.Second
	// observePeriod is how long CPUs may stay blocked after their cgroup is gone.
	observePeriod = 5 * time.Second
)

// recoverClaims settles what the claims on record still hold, by what the API
// server and the kernel say.
func recoverClaims(ctx context.Context, o options, client kubernetes.Interface, core *driver.Driver) error {
	logger := klog.FromContext(ctx)
	held, err := heldCPUs(o.cgroupRoot)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, claimsTimeout)
	defer cancel()
	claims, err := kubeletplugin.ReadClaims(asking, client, core.Grants())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		logger.Error(err, "Claims that could not be read keep what they have")
	}
	report, err := core.Recover(claims, held)
	if err != nil {
		return err
	}
	for _, finding := range report {
		logger.Info("Recovered", "finding", finding.String())
	}
	return nil
}

// heldCPUs is what the partitions of the host hold.
func heldCPUs(cgroupRoot string) ([]driver.Held, error) {
	holdings, err := pin.Holdings(os.DirFS(cgroupRoot))
	if err != nil {
		return nil, err
	}
	held := make([]driver.Held, 0, len(holdings))
	for _, holding := range holdings {
		held = append(held, driver.Held{Cgroup: holding.Cgroup, CPUs: holding.CPUs})
	}
	return held, nil
}

// startObserving observes in the background until ctx ends or stop is called,
// which waits for it.
func startObserving(ctx context.Context, cgroupRoot string, core *driver.Driver) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { observe(ctx, cgroupRoot, core) })
	return func() {
		cancel()
		running.Wait()
	}
}

// observe keeps telling the driver what the partitions hold, until ctx ends.
func observe(ctx context.Context, cgroupRoot string, core *driver.Driver) {
	var known []string
	for ticks := time.NewTicker(observePeriod); ; {
		select {
		case <-ctx.Done():
			ticks.Stop()
			return
		case <-ticks.C:
		}
		findings, err := observeOnce(cgroupRoot, core)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Partitions are not observed", "cgroupRoot", cgroupRoot)
			continue
		}
		for _, finding := range findings {
			if !slices.Contains(known, finding) {
				klog.FromContext(ctx).Info("Observed", "finding", finding)
			}
		}
		known = findings
	}
}

func observeOnce(cgroupRoot string, core *driver.Driver) (findings []string, err error) {
	held, err := heldCPUs(cgroupRoot)
	if err != nil {
		return nil, err
	}
	report, err := core.Observe(held)
	for _, finding := range report {
		findings = append(findings, finding.String())
	}
	return findings, err
}
