package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// runKeep runs the keeper until the context ends.
func runKeep(ctx context.Context, c cli.Call, host host, streams streams) error {
	var lock, records, kubelet, tell, beats string
	var format cli.LogFormat
	flags := c.Flags()
	addFiles(flags, &lock, &records)
	flags.StringVar(&host.cgroups, "cgroups", host.cgroups, "cgroup v2 `directory` of the host")
	flags.StringVar(&host.workqueues, "workqueues", "", "`directory` with the CPU mask of the kernel's workqueues (default: it is not written)")
	flags.StringVar(&kubelet, "kubelet", "", "root `directory` of the kubelet, with the state of its managers")
	flags.StringVar(&tell, "policies", "", "`directory` in which the daemon is told their policies")
	flags.StringVar(&beats, "heartbeat", "", "`directory` in which the daemon is told that the keeper works")
	format.AddFlag(flags)
	if err := c.ParseAll(flags); err != nil {
		return err
	}
	if (kubelet == "") != (tell == "") {
		return cli.Usagef("--kubelet and --policies belong together")
	}
	opened, err := host.open(records)
	if err != nil {
		return fmt.Errorf("keep claims pinned: %w", err)
	}
	defer closeHost(opened)
	debug.SetGCPercent(25) // the keeper runs for a long time and needs very little memory
	runtime.GOMAXPROCS(1)  // and time
	booted, err := host.booted()
	if err != nil {
		return fmt.Errorf("keep claims pinned: %w", err)
	}
	keeper := pin.Keeper{
		Host:   opened,
		Booted: booted,
		Lock:   func() (func(), error) { return pin.Lock(lock) },
		Log: func(line string) {
			fmt.Fprint(streams.err, format.Line(time.Now(), "numa-pin", line))
		},
	}
	if kubelet != "" {
		copier, err := newCopier(kubelet, tell, opened.Boot)
		if err != nil {
			return fmt.Errorf("copy policies of the kubelet's managers: %w", err)
		}
		defer copier.close()
		keeper.Also, keeper.AlsoOn = copier.copy, []string{kubelet, tell}
	}
	heart, err := newHeart(beats, stuckAfter)
	if err != nil {
		return fmt.Errorf("keep claims pinned: %w", err)
	}
	defer heart.close()
	also := keeper.Also
	keeper.Also = func() error {
		err := heart.beat(time.Now(), keeper.Counts())
		if also != nil {
			err = errors.Join(err, also())
		}
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx)
	}()
	select {
	case <-ended:
		return nil
	case <-heart.stuck.C: // the kubelet starts the container again
		return fmt.Errorf("keep claims pinned: stuck for %s", stuckAfter)
	}
}

// booted returns when the current boot began, to the second.
func (h host) booted() (time.Time, error) {
	text, err := os.ReadFile(h.proc + "/stat")
	if err != nil {
		return time.Time{}, err
	}
	for line := range strings.Lines(string(text)) {
		if seconds, found := strings.CutPrefix(strings.TrimSpace(line), "btime "); found {
			began, err := strconv.ParseInt(seconds, 10, 64)
			return time.Unix(began, 0), err
		}
	}
	return time.Time{}, fmt.Errorf("%s/stat has no line btime", h.proc)
}
