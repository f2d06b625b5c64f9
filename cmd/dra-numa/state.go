package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"reflect"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

const stateUsage = `Usage: dra-numa state [flags]

Prints the state of the claims on this node as one JSON document, from the
checkpoint, the CDI specs and the cgroups. It changes nothing and takes no lock,
so a daemon may run at the same time. The document names what cannot be read as
a problem.

`

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
func runState(args []string, env func(string) string, stdout io.Writer) error {
	o := options{}
	flags := flag.NewFlagSet("dra-numa state", flag.ContinueOnError)
	kubeletRootFlag(flags, &o.kubeletRoot)
	cdiDirFlag(flags, &o.cdiDir)
	cgroupRootFlag(flags, &o.cgroupRoot)
	machineRootFlag(flags, &o.machineRoot)
	if err := cli.Parse(flags, args, stateUsage, stdout); err != nil {
		return err
	}
	if err := cli.FlagsOnly(flags); err != nil {
		return err
	}
	bootID, err := readBootID(os.DirFS(o.machineRoot))
	if err != nil {
		return err
	}
	files := nodeFiles{os.DirFS(o.pluginDir()), os.DirFS(o.cdiDir), os.DirFS(o.cgroupRoot), os.DirFS(o.hook().RecordsDir())}
	state := files.settled(func() { time.Sleep(statePause) })
	state.Node, state.BootID = env("NODE_NAME"), bootID
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(state)
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
		Version: nodestate.Version, Checkpoint: nodestate.Checkpoint{Grants: []driver.Grant{}},
		Specs: []cdi.Written{}, Partitions: []nodestate.Partition{}, Pins: []nodestate.Pin{}, Problems: []nodestate.Problem{},
	}
	problem := func(part nodestate.Part, err error) {
		if err != nil {
			state.Problems = append(state.Problems, nodestate.Problem{Part: part, Why: message.OneLine(err.Error())})
		}
	}
	checkpoint, err := f.checkpoint()
	problem(nodestate.CheckpointPart, err)
	state.Checkpoint.Version, state.Checkpoint.BootID = checkpoint.Version, checkpoint.BootID
	state.Checkpoint.Grants = append(state.Checkpoint.Grants, checkpoint.Grants...)
	specs, err := cdi.ReadSpecs(f.specs)
	problem(nodestate.SpecsPart, err)
	state.Specs = append(state.Specs, specs...)
	holdings, err := pin.Holdings(f.cgroups)
	problem(nodestate.PartitionsPart, err)
	for _, holding := range holdings {
		state.Partitions = append(state.Partitions, nodestate.Partition(holding))
	}
	live, err := pin.Inspect(f.cgroups, f.pins)
	problem(nodestate.PinsPart, err)
	for _, cgroup := range live {
		state.Pins = append(state.Pins, pinned(cgroup))
	}
	return state
}

// checkpoint returns an empty checkpoint if the daemon has never started. The driver's
// directory must exist even then.
func (f nodeFiles) checkpoint() (driver.Checkpoint, error) {
	if _, err := fs.Stat(f.state, "."); err != nil {
		return driver.Checkpoint{}, err
	}
	data, err := fs.ReadFile(f.state, driver.CheckpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return driver.Checkpoint{}, nil
	}
	if err != nil {
		return driver.Checkpoint{}, err
	}
	return driver.DecodeCheckpoint(data)
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
