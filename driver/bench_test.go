package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// BenchmarkPrepareUnprepare prepares and unprepares a claim of 8 CPUs on machines of
// several sizes, on which other claims hold theirs. Each operation writes two checkpoints
// and a spec, and removes the spec. The same run measures two baselines: all files of
// the operation without a driver, and the replacement of one file.
//
// fsync-ns/op is the time in fsync. It is not part of ns/op, because it depends on the
// disk. So does the time in which a file system creates and removes files; on ext4 a
// rename takes 0.1 ms. Therefore the files are in memory, as CDI specs are, where fsync
// takes almost no time. disk/512cpus is entirely in TMPDIR.
func BenchmarkPrepareUnprepare(b *testing.B) {
	memory := inMemory(b)
	for _, load := range measure.Loads() {
		benchmarkPrepare(b, load.String(), memory, load)
	}
	benchmarkPrepare(b, "disk", b.TempDir(), measure.Load{CPUs: 512, Claims: 32, Each: 8})
}

// inMemory returns a new folder in memory where there is one for it, else in TMPDIR.
func inMemory(b *testing.B) string {
	b.Helper()
	shared, err := os.MkdirTemp("/dev/shm", "dra-numa")
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(shared) })
	return shared
}

// loaded is a driver whose claims hold what the load says. The measured claim has room on
// NUMA node 0.
func loaded(b *testing.B, disk *disk, load measure.Load) *Driver {
	b.Helper()
	disk.machine = sample.Read(b, sample.Sized(load.CPUs))
	driver := disk.open()
	for i := range load.Claims {
		zone := fmt.Sprintf("numa-%d", i%2)
		if _, _, err := driver.Prepare(claim(fmt.Sprintf("other-%d", i), result("r", zone, int64(load.Each))), nil); err != nil {
			b.Fatal(err)
		}
	}
	return driver
}

func benchmarkPrepare(b *testing.B, name, dir string, load measure.Load) {
	b.Helper()
	b.Run(name, func(b *testing.B) { // a set-up of its own: -bench selects one
		disk := diskIn(b, dir)
		driver := loaded(b, &disk, load)
		before := disk.files()[ledger.CheckpointName]
		wanted, pods := claim("a", result("r", "numa-0", measure.Claim)), []*corev1.Pod{podOf("init: main:a main:")}
		if _, _, err := driver.Prepare(wanted, nil); err != nil {
			b.Fatal(err)
		}
		after, spec := disk.files()[ledger.CheckpointName], disk.files()[specName("uid-a")]
		b.Run("pair", func(b *testing.B) {
			timed(b, driver.SyncTime, func() error {
				if _, _, err := driver.Prepare(wanted, pods); err != nil {
					return err
				}
				return driver.Unprepare("uid-a")
			})
		})
		idle := diskIn(b, dir)
		state, specs := durable.NewFiles(idle.state), durable.NewFiles(idle.specs)
		b.Run("files", func(b *testing.B) {
			timed(b, func() time.Duration { return state.SyncTime() + specs.SyncTime() }, func() error {
				return errors.Join(
					state.Replace(ledger.CheckpointName, []byte(after), 0o600),
					specs.Replace(specName("uid-a"), []byte(spec), 0o644),
					idle.specs.Remove(specName("uid-a")),
					state.Replace(ledger.CheckpointName, []byte(before), 0o600),
				)
			})
		})
		b.Run("replace", func(b *testing.B) {
			timed(b, state.SyncTime, func() error { return state.Replace(ledger.CheckpointName, []byte(after), 0o600) })
		})
	})
}

// BenchmarkPublish makes what a node publishes: unchanged is what the daemon does each
// second, renewed is after a change.
func BenchmarkPublish(b *testing.B) {
	sound := func(types.UID, ledger.Share) string { return "" }
	for _, load := range measure.Loads() {
		b.Run(load.String(), func(b *testing.B) {
			disk := diskIn(b, b.TempDir())
			driver := loaded(b, &disk, load)
			publish := func(blocked cpuset.Set, renewed bool) error {
				if driver.Publish(sound, blocked).Renewed != renewed {
					return fmt.Errorf("that it has changed is %v", !renewed)
				}
				return nil
			}
			driver.Publish(sound, cpuset.Set{})
			b.Run("unchanged", func(b *testing.B) {
				measure.Loop(b, func() error { return publish(cpuset.Set{}, false) })
			})
			// The last zone has no CPUs for claims, and has them again.
			all := zones.Of(&disk.machine, "")
			next, last := all[len(all)-1].CPUs, cpuset.Set{}
			b.Run("renewed", func(b *testing.B) {
				measure.Loop(b, func() error {
					next, last = last, next
					return publish(last, true)
				})
			})
		})
	}
}

// BenchmarkSlice encodes what a node with eight zones publishes, as API server and etcd
// store it.
func BenchmarkSlice(b *testing.B) {
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Presets: deviceclasses.Presets()})
	if err != nil {
		b.Fatal(err)
	}
	for _, functions := range []int{8, 16} {
		declared := sample.Preset(b, "epyc-2s-nps4")
		declared.PCI = nil
		for i := range functions {
			address, zone := fmt.Sprintf("0000:%02x:00.0", 8*i+1), i%8
			declared.PCI = append(declared.PCI, []fake.Function{
				fake.NVIDIA(address, zone, i), fake.ConnectX(address, zone, fmt.Sprintf("ens%d", i), i, 0), fake.NVMe(address, zone, i),
			}[i%3])
		}
		config := testConfig()
		config.Attached = selection
		devices := Devices(sample.Read(b, declared), config, nil)
		b.Run(fmt.Sprintf("zones=8/functions=%d", functions), func(b *testing.B) {
			if len(devices) != 8+functions {
				b.Fatalf("%d devices", len(devices))
			}
			size := 0
			measure.Loop(b, func() error {
				size = 0
				for _, slice := range Resources(node, devices).Pools[node].Slices {
					object := resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
						Driver: Name, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
						Devices: slice.Devices, SharedCounters: slice.SharedCounters,
					}}
					object.GenerateName = node + "-" + Name + "-"
					text, err := object.Marshal()
					if err != nil {
						return err
					}
					size += len(text)
				}
				return nil
			})
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// BenchmarkPrepareUnprepareWithWays is the same with ways of the zone's cache, on a node
// with 15 classes. Other claims have 14 of them. The baselines are a claim without ways
// that is not monitored, and one that is.
//
// cpu-ns/op is the time that the goroutine computes, which other programs on the machine
// do not make longer, without the time in files of resctrl: that is kernel-ns/op, here of
// the fake kernel. A node has its checkpoint on a disk, so the rows with -disk show what a
// claim with ways costs there.
func BenchmarkPrepareUnprepareWithWays(b *testing.B) {
	without := claim("a", result("r", "numa-0", 8))
	with := claim("a", result("r", "numa-0", 8), ofCache("ways", "cache-0-guaranteed", "ways=2", "bandwidthPercent=40"))
	const pools, unmonitored = "{os: {ways: 1}, guaranteed: {ways: 19}}", "{monitor: false, os: {ways: 1}, guaranteed: {ways: 19}}"
	for _, in := range []struct{ suffix, dir string }{{"", inMemory(b)}, {"-disk", b.TempDir()}} {
		benchmarkWays(b, "512cpus"+in.suffix, in.dir, unmonitored, with)
		benchmarkWays(b, "512cpus-monitored"+in.suffix, in.dir, pools, with)
		benchmarkWays(b, "baseline-without-ways"+in.suffix, in.dir, unmonitored, without)
		benchmarkWays(b, "baseline-monitored"+in.suffix, in.dir, pools, without)
	}
}

func benchmarkWays(b *testing.B, name, dir, pools string, wanted *resourceapi.ResourceClaim) {
	b.Helper()
	machine, err := numa.Read(fake.Machine{
		Sockets: 2, CoresPerSocket: 128, Threads: 2, MemoryBytes: 64 << 30,
		Resctrl: &fake.Resctrl{CLOSIDs: 16, Ways: 20, MinBandwidth: 10, BandwidthStep: 10},
	}.FS())
	if err != nil {
		b.Fatal(err)
	}
	kernel, ok := resctrlfs.Of(machine, resctrlfs.Linux612)
	if !ok {
		b.Fatal("the machine has no resctrl")
	}
	kernel.RMIDs, kernel.Features = 256, []string{"mbm_total_bytes", "mbm_local_bytes"} // without occupancy, no RMID is in limbo
	n := &cacheNode{diskIn(b, dir), resctrlfs.New(kernel), pools}
	n.machine = machine
	files := &timedFiles{FS: n.groups}
	config := n.config()
	config.Caches.Host = resctrl.New(files, numa.ResctrlView{AllTasks: true})
	driver := n.openWith(config)
	for i := range 14 {
		device := fmt.Sprintf("cache-%d-guaranteed", i%2)
		if _, _, err := driver.Prepare(claim(fmt.Sprintf("other-%d", i), result("r", fmt.Sprintf("numa-%d", i%2), 8), ofCache("ways", device, "ways=2")), nil); err != nil {
			b.Fatal(err)
		}
	}
	pods := []*corev1.Pod{podOf("init: main:a main:")}
	b.Run(name, func(b *testing.B) {
		runtime.LockOSThread() // its time is that of the thread
		defer runtime.UnlockOSThread()
		changes := 0
		n.groups.Around(func(_ resctrlfs.Change, effect func() error) error {
			changes++
			return effect()
		})
		files.spent = 0
		began := threadTime()
		timed(b, driver.SyncTime, func() error {
			if _, _, err := driver.Prepare(wanted, pods); err != nil {
				return err
			}
			return driver.Unprepare("uid-a")
		})
		b.ReportMetric(float64((threadTime()-began-files.spent).Nanoseconds())/float64(b.N), measure.CPUUnit)
		b.ReportMetric(float64(files.spent.Nanoseconds())/float64(b.N), "kernel-ns/op")
		b.ReportMetric(float64(changes)/float64(b.N), "changes/op")
	})
}

// timedFiles notes the time that the thread spends in them.
type timedFiles struct {
	*resctrlfs.FS
	spent time.Duration
}

func (f *timedFiles) time(began time.Duration) { f.spent += threadTime() - began }

func (f *timedFiles) Open(name string) (fs.File, error) {
	defer f.time(threadTime())
	return f.FS.Open(name)
}

func (f *timedFiles) ReadFile(name string) ([]byte, error) {
	defer f.time(threadTime())
	return f.FS.ReadFile(name)
}

func (f *timedFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	defer f.time(threadTime())
	return f.FS.ReadDir(name)
}

func (f *timedFiles) Mkdir(name string) error {
	defer f.time(threadTime())
	return f.FS.Mkdir(name)
}

func (f *timedFiles) Rmdir(name string) error {
	defer f.time(threadTime())
	return f.FS.Rmdir(name)
}

func (f *timedFiles) Write(name, text string) error {
	defer f.time(threadTime())
	return f.FS.Write(name, text)
}

// threadTime is the time for which the calling thread has run.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// timed reports the time of the operation without fsync, and the time in fsync.
func timed(b *testing.B, syncTime func() time.Duration, operation func() error) {
	b.Helper()
	began := syncTime()
	measure.Loop(b, operation)
	synced := syncTime() - began
	b.ReportMetric(float64((b.Elapsed()-synced).Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(synced.Nanoseconds())/float64(b.N), "fsync-ns/op")
}
