package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// stateBytes is how much of the OCI state is read. Runtimes write about 1 KiB.
const stateBytes = 1 << 20

// config is the command line of numa-pin pin.
type config struct {
	claim         pin.Claim
	scope         pin.Scope
	pods          []string   // those that scope was decided for; nil: all
	quotaPods     []quotaPod // those whose CPU quotas may be lifted
	idle          cpuset.Set // the part of the claim's CPUs that the container must not run on
	lock, records string
	dryRun        bool // print the plan, and change nothing
}

// runPin pins the container whose OCI state is on standard input.
func runPin(c cli.Call, host host, streams streams) error {
	began := time.Now()
	config, err := parsePin(c)
	if err != nil {
		return err
	}
	if stop, stopped := isStopped(config.records); stopped {
		fmt.Fprintf(streams.err, "numa-pin: not pinned to %s for claim %s: %s exists\n", config.claim.Pinning, config.claim.Name, stop)
		if !config.dryRun {
			recordUse(host, streams, config.lock, config.records, config.claim.ClaimRef)
		}
		return nil
	}
	state, err := readState(streams.in)
	if err != nil {
		return config.errorf("container", err)
	}
	if config.dryRun {
		return config.show(host, state, streams.out)
	}
	err = pinContainer(config, host, state, began)
	if err == nil {
		return nil
	}
	if refused := (*pin.RefusedError)(nil); errors.As(err, &refused) && len(refused.Plan.Writes) > 0 {
		err = &cli.DetailedError{Err: err, Details: "the plan was:\n" + planText(refused.Plan)}
	}
	return leaveRefusal(config.claim.ClaimRef, config.records, host, state, err)
}

// show prints what the hook would write, and changes nothing.
func (c config) show(host host, state state, stdout io.Writer) error {
	container, err := state.cgroup(host.proc)
	if err != nil {
		return c.errorf("container "+state.ID, err)
	}
	boot, err := host.bootID()
	if err != nil {
		return err
	}
	if err := c.setPod(container); err != nil {
		return c.errorf("container "+container, err)
	}
	plan, err := pin.Preview(os.DirFS(host.cgroups), os.DirFS(c.records), boot, container, c.scope, c.claim)
	if err != nil {
		return c.errorf("container "+container, err)
	}
	text := planText(plan)
	if !c.idle.IsEmpty() {
		text += fmt.Sprintf("threads of process %d <- without cpus %s\n", state.PID, c.idle)
	}
	if text == "" {
		text = "nothing to write\n"
	}
	_, err = fmt.Fprintf(stdout, "pin container %s to %s for claim %s:\n%s", container, c.claim.Pinning, c.claim.Name, text)
	return err
}

// planLines bounds what is printed of a plan: tenants may have made many cgroups.
const planLines = 40

// planText is the plan, without the end of a long one.
func planText(plan pin.Plan) string {
	left := len(plan.Writes) - planLines
	if left <= 0 {
		return plan.String()
	}
	plan.Writes = plan.Writes[:planLines]
	return plan.String() + fmt.Sprintf("and %d more\n", left)
}

// setPod says what depends on the container's pod: whether it came later than those that the
// scope was decided for, and whether its CPU quotas may be lifted. It returns an error if the
// pod would get the CPUs and has no cgroup.
func (c *config) setPod(container string) error {
	if c.scope == pin.ScopePod && !c.claim.CPUs.IsEmpty() {
		if err := pin.CheckPod(container); err != nil {
			return err
		}
	}
	c.claim.Later = c.scope == pin.ScopePod && c.pods != nil && !pin.InPod(container, c.pods)
	for _, pod := range c.quotaPods {
		if pin.InPod(container, []string{pod.uid}) {
			c.claim.LiftQuota, c.claim.PodLimit = true, pod.limit
		}
	}
	return nil
}

// quotaPod is a pod and what the CPU limits of its containers add up to, in thousandths.
type quotaPod struct {
	uid   string
	limit int64
}

func parseQuotaPods(list string) (pods []quotaPod, err error) {
	for item := range strings.SplitSeq(list, ",") {
		uid, limit, _ := strings.Cut(item, "=")
		milli, err := strconv.ParseInt(limit, 10, 64)
		if err != nil || milli < 0 || uid == "" {
			return nil, fmt.Errorf("%q, want UID=LIMIT with a limit of 0 or more", item)
		}
		pods = append(pods, quotaPod{uid, milli})
	}
	return pods, nil
}

func pinContainer(config config, host host, state state, began time.Time) error {
	container, err := state.cgroup(host.proc)
	if err != nil {
		return config.errorf("container "+state.ID, err)
	}
	if err := pinLocked(config, host, container, began); err != nil {
		return config.errorf("container "+container, err)
	}
	if config.idle.IsEmpty() {
		return nil
	}
	if err := keepIdle(host, state.PID, container, config.idle); err != nil {
		return config.errorf("container "+container, fmt.Errorf("keep cpus %s idle: %w", config.idle, err))
	}
	return nil
}

// leaveRefusal leaves the reason for the daemon, which puts it on the claim's pods, and
// returns it. Not every runtime reports what a failed hook says.
func leaveRefusal(claim pin.ClaimRef, records string, host host, state state, why error) error {
	opened, err := host.open(records)
	if err != nil {
		return why // that is the reason
	}
	defer closeHost(opened)
	left := pin.LeaveRefusal(opened.Records, pin.Refusal{
		Claim: claim, Container: state.ID, At: time.Now().UTC(), Why: why.Error(),
	})
	if left != nil {
		return fmt.Errorf("%w; leave the reason: %w", why, left)
	}
	return why
}

func parsePin(call cli.Call) (c config, err error) {
	flags := call.Flags()
	addClaim(flags, &c.claim.ClaimRef, &c.lock, &c.records)
	setFlag(flags, "cpus", "`list` of CPUs of the claim", &c.claim.CPUs)
	setFlag(flags, "mems", "`list` of NUMA nodes of the claim", &c.claim.Mems)
	setFlag(flags, "idle", "`list` of CPUs of the claim on which the container must not run", &c.idle)
	c.claim.Partition = pin.PartitionRoot
	flags.Func("partition", "`kind` of the partition: root, isolated or none (default root)", func(name string) (err error) {
		c.claim.Partition, err = pin.ParsePartition(name)
		return err
	})
	c.scope = pin.ScopeContainer
	flags.Func("scope", "whose `cgroup` is the partition: container or pod (default container)", func(name string) (err error) {
		c.scope, err = pin.ParseScope(name)
		return err
	})
	flags.Func("pods", "`UIDs` of the pods that the scope was decided for (default: all)", func(list string) error {
		c.pods = strings.Split(list, ",")
		return nil
	})
	flags.Func("lift-quota", "`PODS` whose CPU quotas are lifted if the claim's CPUs fit in them: UID=LIMIT,…, the limit in thousandths of a CPU (default: none)", func(list string) (err error) {
		c.quotaPods, err = parseQuotaPods(list)
		return err
	})
	flags.BoolVar(&c.dryRun, "dry-run", false, "print what would be written to the kernel, and change nothing")
	if err := call.ParseAll(flags, "uid", "claim"); err != nil {
		return c, err
	}
	switch {
	case c.claim.CPUs.IsEmpty() && c.claim.Mems.IsEmpty():
		return c, cli.Usagef("--cpus and --mems are missing: want one of them")
	case !c.idle.IsEmpty() && (c.idle == c.claim.CPUs || !c.idle.IsSubsetOf(c.claim.CPUs)):
		return c, cli.Usagef("--idle=%s is not a proper subset of --cpus", c.idle)
	}
	return c, nil
}

func setFlag(flags *flag.FlagSet, name, usage string, set *cpuset.Set) {
	flags.Func(name, usage, func(list string) (err error) {
		*set, err = cpuset.Parse(list)
		return err
	})
}

// errorf says what the hook tried to do, for which claim, and why it failed.
func (c config) errorf(container string, err error) error {
	return fmt.Errorf("pin %s to %s for claim %s: %w", container, c.claim.Pinning, c.claim.Name, err)
}

func pinLocked(c config, host host, container string, began time.Time) error {
	return withHost(host, c.lock, c.records, func(opened pin.Host) error {
		err := c.setPod(container)
		if err == nil {
			err = pin.Pin(opened, container, c.scope, c.claim)
		}
		_ = pin.CountHook(c.lock, time.Since(began), err != nil) // a figure that is lost must not stop a container
		return err
	})
}

// state has the fields that the hook needs of "State" in the OCI runtime specification.
type state struct {
	ID  string `json:"id"`
	PID int    `json:"pid"`
}

func readState(stdin io.Reader) (s state, err error) {
	data, err := io.ReadAll(io.LimitReader(stdin, stateBytes))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read OCI state from standard input: %w", err)
	}
	if s.PID <= 0 {
		return s, fmt.Errorf("OCI state of container %q has pid %d: run this as a createRuntime hook", s.ID, s.PID)
	}
	return s, nil
}

// cgroup finds the container's cgroup through its first process.
func (s state) cgroup(proc string) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("%s/%d/cgroup", proc, s.PID))
	if err != nil {
		return "", err
	}
	return pin.Container(string(data), s.ID)
}
