package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// cleanPeriod is how often the cleaner looks again. A node stays clean, but a daemon or a
// keeper that ends slowly may still write a file.
const cleanPeriod = 5 * time.Second

// cleaner removes what the driver has left on a node without claims.
type cleaner struct {
	options
	gpuReports string // the directory of numa-nvml; "" without it
	workqueues string // the directory with the mask of the kernel's workqueues
	lost       bool   // the folder of the driver was gone before clean succeeded
	cleaned    bool   // clean has succeeded
	state      cleanState
}

func (c *cleaner) flags(flags *flag.FlagSet) {
	hostFlag(flags, "kubelet-root", &c.kubeletRoot)
	hostFlag(flags, "cdi-dir", &c.cdiDir)
	hostFlag(flags, "hook-dir", &c.hookDir)
	hostFlag(flags, "cgroup-root", &c.cgroupRoot)
	flags.StringVar(&c.workqueues, "workqueues", "/sys/"+pin.WorkqueuesDir, "`directory` with the CPU mask of the kernel's workqueues")
	hostFlag(flags, "machine-root", &c.machineRoot)
	hostFlag(flags, "performance-root", &c.performanceRoot)
	flags.StringVar(&c.resctrl, "resctrl", "", "`directory` where resctrl is mounted; empty: the driver has not divided caches")
	flags.StringVar(&c.gpuReports, "gpu-reports", "", "`directory` of what numa-nvml writes; empty: it has not run")
	flags.StringVar(&c.listen, "listen", ":8089", "`address` for /readyz")
}

// cleanState is the answer of /readyz: why the node is not clean, and nothing if it is.
type cleanState struct{ problem atomic.Pointer[string] }

func (s *cleanState) set(problem string) { s.problem.Store(&problem) }

// ServeHTTP implements [http.Handler].
func (s *cleanState) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if problem := s.problem.Load(); problem == nil || *problem != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		if problem != nil {
			fmt.Fprintln(w, *problem)
		}
		return
	}
	fmt.Fprintln(w, "the node is clean")
}

// run keeps the node clean until the context ends. It does nothing while the driver is
// installed, and logs each new problem.
func (c *cleaner) run(ctx context.Context, installed func(context.Context) (bool, error)) {
	told := "nothing"
	for ctx.Err() == nil {
		err := cli.Confined(c.look(ctx, installed))
		text := ""
		if err != nil {
			text = err.Error()
		}
		c.state.set(text)
		switch {
		case text == told || ctx.Err() != nil:
		case text == "":
			klog.FromContext(ctx).Info("The node is clean")
		default:
			klog.FromContext(ctx).Error(err, "The node is not clean")
		}
		told = text
		select {
		case <-ctx.Done():
		case <-time.After(cleanPeriod):
		}
	}
}

func (c *cleaner) look(ctx context.Context, installed func(context.Context) (bool, error)) error {
	found, err := installed(ctx)
	if err != nil {
		return err
	}
	if found {
		return errors.New("the driver is installed: nothing is removed")
	}
	return c.clean()
}

// clean removes everything of the driver, unless claims are prepared or containers of claims
// run. It may be called again after an error or a crash: what says that claims are prepared
// is removed last. A node whose folder somebody has deleted is looked at as any other, but a
// node that is clean stays so without it.
func (c *cleaner) clean() error {
	_, err := os.Stat(c.pluginDir())
	gone := errors.Is(err, fs.ErrNotExist)
	if gone && c.cleaned {
		if err := c.checkClaims(); err != nil {
			return err
		}
		return c.removeRest()
	}
	c.lost = c.lost || gone
	if err := c.cleanAll(); err != nil {
		return err
	}
	c.cleaned, c.lost = true, false
	return nil
}

// cleanAll does what clean does for a folder of the driver, which it makes if it is lost.
func (c *cleaner) cleanAll() error {
	if c.lost {
		if err := c.checkPods(); err != nil {
			return err
		}
		if err := os.MkdirAll(c.pluginDir(), 0o750); err != nil {
			return err
		}
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkClaims(); err != nil {
		return err
	}
	if err := c.restoreFirst(); err != nil {
		return err
	}
	if err := c.clearCgroups(); err != nil {
		return err
	}
	if err := c.removeRest(); err != nil {
		return err
	}
	return os.RemoveAll(c.pluginDir())
}

// ofPod finds the cgroup of a pod, with both cgroup drivers of the kubelet.
var ofPod = regexp.MustCompile(`(^|[/-])pod[0-9a-f]`)

// checkPods returns an error if pods have partitions. The records of the hook are gone, which
// would say whether claims do.
func (c *cleaner) checkPods() error {
	holdings, unread, err := pin.ReadHoldings(os.DirFS(c.cgroupRoot))
	if err := errors.Join(err, unread); err != nil {
		return err
	}
	var pods []string
	for _, holding := range holdings {
		if ofPod.MatchString(holding.Cgroup) {
			pods = append(pods, holding.Cgroup)
		}
	}
	if len(pods) > 0 {
		return fmt.Errorf("cgroups %q of pods are partitions, and the folder of the driver is gone: delete their pods", pods)
	}
	return nil
}

// lock takes the lock of the node's daemon, and does not wait for it.
func (c *cleaner) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(c.pluginDir(), instanceFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("the daemon of the node has not ended yet")
		}
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil
}

// checkClaims returns an error if claims are prepared. CDI specs have the grants, too, in
// case that the checkpoint is lost.
func (c *cleaner) checkClaims() error {
	checkpoint, err := readCheckpoint(filepath.Join(c.pluginDir(), ledger.CheckpointName))
	if errors.Is(err, fs.ErrNotExist) {
		specs, err := c.specs()
		if err != nil || specs == nil {
			return err
		}
		defer specs.Close()
		uids, err := cdi.NewStore(specs).ClaimUIDs()
		if err == nil && len(uids) > 0 {
			err = fmt.Errorf("the checkpoint is missing, but there are CDI specs of claims: %q", uids)
		}
		return err
	}
	if err != nil {
		return err
	}
	var problems []string
	for i := range checkpoint.Grants {
		grant := &checkpoint.Grants[i]
		problems = append(problems, fmt.Sprintf("claim %s/%s is prepared", grant.Namespace, grant.Name))
	}
	return oneLine(problems)
}

// restoreFirst gives the host back what it had before claims and the default of the
// NodeConfig.
func (c *cleaner) restoreFirst() error {
	path := filepath.Join(c.pluginDir(), tuning.FirstName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	boot, err := readBootID(os.DirFS(c.machineRoot))
	if err != nil {
		return err
	}
	first, err := tuning.DecodeFirst(data)
	if err != nil {
		return fmt.Errorf("%s: %w; delete the file: frequencies, idle states and interrupts stay as they are until the next boot", path, err)
	}
	if first.BootID != boot {
		return nil
	}
	return first.Restore(*c.tunable())
}

// clearCgroups takes back the partitions of containers that have ended.
func (c *cleaner) clearCgroups() error {
	hook := c.hook()
	unlock, err := pin.Lock(hook.LockFile())
	if err != nil {
		return err
	}
	defer unlock()
	records, err := openDir(hook.RecordsDir(), 0o755)
	if err != nil {
		return err
	}
	defer records.Close()
	cgroups, err := os.OpenRoot(c.cgroupRoot)
	if err != nil {
		return err
	}
	defer cgroups.Close()
	boot, err := readBootID(os.DirFS(c.machineRoot))
	if err != nil {
		return err
	}
	workqueues, err := pin.OpenWorkqueues(c.workqueues)
	if err != nil {
		return err
	}
	if workqueues != nil {
		defer workqueues.Close()
	}
	live, err := pin.Clear(pin.Host{Cgroups: cgroups, Records: records, Boot: boot, Workqueues: workqueues})
	if err == nil && len(live) > 0 {
		err = fmt.Errorf("containers of claims run in cgroups %q", live)
	}
	return err
}

// removeRest removes what does not say who holds what.
func (c *cleaner) removeRest() error {
	specs, err := c.specs()
	if err != nil {
		return err
	}
	if specs != nil {
		defer specs.Close()
		err = errors.Join(cdi.NewStore(specs).RemoveExcept(func(string) bool { return false }), kubeletplugin.RemoveAllMetadata(specs), removeScratch(c.cdiDir))
	}
	if c.resctrl != "" {
		mounts, _ := os.ReadFile("/proc/self/mounts") // without it, nothing is mounted
		options, _ := numa.ResctrlOptions(string(mounts))
		err = errors.Join(err, caches.Withdraw(resctrl.On(c.resctrl, resctrlView()), options))
	}
	if c.gpuReports != "" {
		err = errors.Join(err, empty(c.gpuReports))
	}
	if removed := os.Remove(filepath.Join(c.registryDir(), kubeletplugin.RegistrarSocket)); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return errors.Join(err, removeHook(c.hook().Path))
}

// removeHook removes the hook's program, and its folder if nothing else is there: the folder
// is the operator's choice, and may have other programs. A folder that is mounted stays.
func removeHook(program string) error {
	for _, path := range []string{program, durable.Unfinished(program)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := os.Remove(filepath.Dir(program))
	for _, stays := range []error{fs.ErrNotExist, syscall.ENOTEMPTY, syscall.EBUSY, syscall.EROFS} {
		if errors.Is(err, stays) { // EROFS: it is mounted, and the container's own files are read-only
			return nil
		}
	}
	return err
}

// empty removes what is in a directory, which may be mounted and then cannot be removed.
func empty(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, entry.Name())))
	}
	return err
}

// specs opens the directory of CDI specs. It returns nil if there is none.
func (c *cleaner) specs() (*os.Root, error) {
	specs, err := os.OpenRoot(c.cdiDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return specs, err
}
