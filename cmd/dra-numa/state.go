package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

const (
	// stateLooks bounds how often the node is looked at. Two looks in a row that find
	// the same end it sooner.
	stateLooks = 10
	// statePause is the pause between two looks. It is longer than preparing a claim
	// takes.
	statePause = 50 * time.Millisecond
)

// nodeFiles are the directories where a node keeps what claims hold.
type nodeFiles struct {
	state, specs, cgroups, pins fs.FS
}

// runState prints the state of this node.
func runState(ctx context.Context, c cli.Call, env func(string) string) error {
	o := options{}
	flags := c.Flags()
	hostFlag(flags, "kubelet-root", &o.kubeletRoot)
	hostFlag(flags, "cdi-dir", &o.cdiDir)
	hostFlag(flags, "cgroup-root", &o.cgroupRoot)
	hostFlag(flags, "machine-root", &o.machineRoot)
	hostFlag(flags, "nri-socket", &o.nriSocket)
	hostFlag(flags, "resctrl", &o.resctrl)
	caches := flags.Bool("caches", false, "also say who has which ways of level-3 caches, and what the kernel counts for claims. Reading a counter interrupts a CPU of its cache")
	host := flags.Bool("host", false, "also report whether the container runtime offers NRI, and which services run that change frequencies or interrupts")
	pid := flags.Int("pid", 1, "take the reserved CPUs from the flags of the daemon with this process `id` in this container")
	if err := c.ParseAll(flags); err != nil {
		return err
	}
	bootID, err := readBootID(os.DirFS(o.machineRoot))
	if err != nil {
		return err
	}
	files := nodeFiles{os.DirFS(o.pluginDir()), os.DirFS(o.cdiDir), os.DirFS(o.cgroupRoot), os.DirFS(o.hook().RecordsDir())}
	state := files.settled(func() { time.Sleep(statePause) })
	state.Node, state.BootID = env("NODE_NAME"), bootID
	if *host {
		state.Host = o.hostState(files.cgroups)
	}
	running, _, err := optionsOf(os.DirFS("/proc"), *pid, env)
	if err == nil && running.hostProc != "" && hasWays(state.Checkpoint.Grants) {
		if state.Tasks, err = taskGroups(os.DirFS(running.hostProc)); err != nil {
			state.Problems = append(state.Problems, problem(nodestate.TasksPart, err))
		}
	}
	daemon := sync.OnceValues(func() (options, error) {
		daemon, _, err := optionsOf(os.DirFS("/proc"), *pid, env)
		if err != nil {
			return options{}, err
		}
		daemon.readOnly = true
		return daemon.withConfig(ctx)
	})
	if err == nil {
		o.madeUp = running.madeUp
	}
	machine, err := numa.Read(o.machine())
	if err != nil {
		state.Problems = append(state.Problems, problem(nodestate.LayoutPart, err))
	} else {
		state.Layout = layoutOf(machine, daemon)
	}
	if o, err := daemon(); *host && err == nil && o.profiled != nil {
		state.Host.Profiles = o.profiled.profilesState()
	}
	if *host {
		configured, _ := daemon() // the NodeConfig counts only if it can be read
		state.Host.Paused = kubeletplugin.WhyPaused(configured.publishing == deviceclasses.PublishingPaused, o.pluginDir())
	}
	if *host && err == nil {
		state.Host.NoCaches = whyNoCaches(&machine, daemon)
	}
	if *caches && err == nil {
		var unread error
		if state.Resctrl, unread = resctrlState(os.DirFS(o.resctrl), &machine, state.Checkpoint.Grants); unread != nil {
			state.Problems = append(state.Problems, problem(nodestate.ResctrlPart, unread))
		}
	}
	encoder := json.NewEncoder(c.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(state)
}

// whyNoCaches says why a daemon with these options publishes no caches; "" if it does, if it
// should not, or if the options are not known.
func whyNoCaches(machine *numa.Machine, daemon func() (options, error)) string {
	o, err := daemon()
	if err != nil || o.cachePools == nil {
		return ""
	}
	n := node{machine: *machine, config: driver.Config{ZoneBy: o.zoneBy, Caches: cachesOf(o)}}
	if err := n.reserve(o); err != nil {
		return ""
	}
	if why := dividing.WhyNone(machine, n.config.Dividing()); why != nil {
		return message.OneLine(why.Error())
	}
	return ""
}

// layoutOf returns where the CPUs of the machine are, and which of them a daemon with
// these options reserves.
func layoutOf(machine numa.Machine, daemon func() (options, error)) *nodestate.Layout {
	layout := nodestate.LayoutOf(machine)
	o, err := daemon()
	n := node{machine: machine}
	if err == nil {
		err = n.reserve(o)
	}
	if err != nil {
		layout.Why = message.OneLine(err.Error())
		return layout
	}
	layout.Reserved = &n.config.Reserved
	return layout
}

// settled looks until two looks in a row find the same, so that all parts of the state
// describe the same moment. It gives up after stateLooks looks.
func (f nodeFiles) settled(pause func()) nodestate.State {
	last := f.look()
	for range stateLooks - 1 {
		pause()
		next := f.look()
		if reflect.DeepEqual(last, next) {
			next.Settled = true
			return next
		}
		last = next
	}
	return last
}

// look reads each part once.
func (f nodeFiles) look() nodestate.State {
	state := nodestate.State{
		Format: nodestate.Format, Version: nodestate.Version, Checkpoint: nodestate.Checkpoint{Grants: []ledger.Grant{}},
		Specs: []cdi.Written{}, Partitions: []nodestate.Partition{}, Pins: []nodestate.Pin{}, Problems: []nodestate.Problem{},
	}
	note := func(part nodestate.Part, err error) {
		if err != nil {
			state.Problems = append(state.Problems, problem(part, err))
		}
	}
	checkpoint, err := f.checkpoint()
	note(nodestate.CheckpointPart, err)
	state.Checkpoint.Version, state.Checkpoint.BootID = checkpoint.Version, checkpoint.BootID
	state.Checkpoint.Grants = append(state.Checkpoint.Grants, checkpoint.Grants...)
	specs, err := cdi.ReadSpecs(f.specs)
	note(nodestate.SpecsPart, err)
	state.Specs = append(state.Specs, specs...)
	holdings, unread, err := pin.ReadHoldings(f.cgroups)
	note(nodestate.PartitionsPart, errors.Join(err, unread))
	for _, holding := range holdings {
		state.Partitions = append(state.Partitions, nodestate.Partition(holding))
	}
	live, err := pin.Inspect(f.cgroups, f.pins)
	note(nodestate.PinsPart, err)
	for _, cgroup := range live {
		state.Pins = append(state.Pins, pinned(cgroup))
	}
	ignored, _ := pin.IgnoredPolicies(f.cgroups, f.pins) // Inspect has noted the same errors
	for _, found := range ignored {
		state.IgnoredPolicies = append(state.IgnoredPolicies, nodestate.IgnoredPolicy{
			Cgroup: found.Cgroup, Claim: nodestate.Claim(found.Claim), Want: string(found.Want), Seen: string(found.Seen),
		})
	}
	return state
}

func problem(part nodestate.Part, err error) nodestate.Problem {
	return nodestate.Problem{Part: part, Why: message.OneLine(err.Error())}
}

// checkpoint returns an empty checkpoint if the daemon has never started. The driver's
// directory must exist even then.
func (f nodeFiles) checkpoint() (ledger.Checkpoint, error) {
	if _, err := fs.Stat(f.state, "."); err != nil {
		return ledger.Checkpoint{}, err
	}
	data, err := fs.ReadFile(f.state, ledger.CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return ledger.Checkpoint{}, nil
	}
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	return ledger.DecodeCheckpoint(data)
}

func pinned(cgroup pin.Live) nodestate.Pin {
	p := nodestate.Pin{
		Cgroup: cgroup.Cgroup, CPUs: cgroup.Want.CPUs, Mems: cgroup.Want.Mems, Partition: cgroup.Want.Partition.String(),
		Downgraded: cgroup.Downgraded, Fault: cgroup.Fault,
	}
	for _, claim := range cgroup.Claims {
		p.Claims = append(p.Claims, nodestate.Claim(claim.ClaimRef))
	}
	return p
}

// offersNRI reports whether the NRI socket exists; nil if that is not known.
func (o *options) offersNRI() *bool {
	if _, err := os.Stat(filepath.Dir(o.nriSocket)); o.nriSocket == "" || err != nil {
		return nil
	}
	offers := o.hasNRISocket()
	return &offers
}

// hostState returns what else matters to claims on this node.
func (o *options) hostState(cgroups fs.FS) *nodestate.Host {
	host := &nodestate.Host{NRI: o.offersNRI(), Services: meddlers(cgroups)}
	if slices.Contains(host.Services, nodestate.ServiceIrqbalance) {
		host.Irqbalance = serviceCgroup(nodestate.ServiceIrqbalance)
	}
	return host
}
