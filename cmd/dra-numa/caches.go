package main

import (
	"context"
	"io/fs"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// hostPIDs is the PID namespace of the host: PROC_PID_INIT_INO in include/linux/proc_ns.h.
const hostPIDs = "pid:[4026531836]"

// cachesOf returns how the caches of this node are divided.
func cachesOf(o options) *dividing.Config {
	return &dividing.Config{
		Pools: *o.cachePools,
		Host:  resctrl.On(o.resctrl, resctrlView()),
		Options: func() []string {
			mounts, _ := os.ReadFile("/proc/self/mounts") // without it, nothing is mounted
			options, _ := numa.ResctrlOptions(string(mounts))
			return options
		},
	}
}

func resctrlView() numa.ResctrlView {
	pids, _ := os.Readlink("/proc/self/ns/pid") // without an answer, tasks of others are not visible
	return numa.ResctrlView{AllTasks: pids == hostPIDs}
}

// resctrlState returns what resctrl has of claims. mount is where it is mounted.
func resctrlState(mount fs.FS, machine *numa.Machine, grants []ledger.Grant) (*nodestate.Resctrl, error) {
	groups, err := numa.ReadResctrl(mount, resctrlView())
	if err == nil && groups == nil {
		err = resctrl.ErrNotMounted
	}
	if err != nil {
		return nil, err
	}
	return nodestate.ResctrlOf(*groups, machine, grants, func(group, monitor string, cache int) (numa.CacheCounters, error) {
		return numa.ReadCountersOf(mount, group, monitor, cache)
	}), nil
}

// repairCaches keeps the groups of resctrl as they should be, and logs what is new about
// them.
func (w *watcher) repairCaches(ctx context.Context) {
	report := w.core.RepairCaches()
	if report.Changed {
		w.told = time.Time{} // the plugin publishes it with the next look
	}
	for _, text := range kubeletplugin.News(&w.cacheNews, report.News) {
		klog.FromContext(ctx).Info("Caches", "finding", text)
	}
}
