package pin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// pollEvery is how often the states of recorded cgroups are read: not every
	// kernel reports every way in which a partition becomes invalid.
	pollEvery = 500 * time.Millisecond
	// firstRetry doubles up to lastRetry while something cannot be repaired.
	firstRetry, lastRetry = 50 * time.Millisecond, 400 * time.Millisecond
	// settleTime lets the events of one hook arrive before they are looked at.
	settleTime = 20 * time.Millisecond
)

// Keeper keeps every recorded cgroup as it should be, and drops the records of
// dead ones with what they left. It holds the host's lock only while it works.
type Keeper struct {
	Host Host
	Lock func() (unlock func(), err error)
	Log  func(line string) // one line for each repair, and for each new fault

	told map[string]string // what was last logged about a cgroup or a file that is still at fault
	last string            // the states of the last pass, to notice a change
}

// Run keeps until the context ends, which it notices within half a second, and
// leaves everything as it is then.
func (k *Keeper) Run(ctx context.Context) {
	events, err := newWatch()
	k.tell("inotify", err)
	defer events.close()
	retry := firstRetry
	for ctx.Err() == nil {
		cgroups, healthy := k.pass(ctx, &events)
		if healthy {
			retry = firstRetry
			k.await(ctx, &events, cgroups)
			continue
		}
		// Its own attempts make events too: only time starts the next one.
		sleep(ctx, retry)
		retry = min(2*retry, lastRetry)
	}
}

// await returns when there may be something to do.
func (k *Keeper) await(ctx context.Context, events *watch, cgroups []string) {
	for ctx.Err() == nil {
		if events.wait(pollEvery) {
			sleep(ctx, settleTime)
			return
		}
		if !events.complete || k.states(cgroups) != k.last {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// view is what one look at records and kernel found.
type view struct {
	live   []record
	dead   []record
	wrong  []decision
	causes []error // of wrong, in the same order
	faults []error // of files that are no records
}

// pass looks, and repairs under the lock what is wrong. It returns the live
// recorded cgroups, and whether all is as it should be.
func (k *Keeper) pass(ctx context.Context, events *watch) (cgroups []string, healthy bool) {
	v, err := k.look(events)
	if err == nil && len(v.dead)+len(v.wrong) > 0 && ctx.Err() == nil {
		v, err = k.repair(events)
	}
	k.tell("records", errors.Join(append(v.faults, err)...))
	for _, r := range v.live {
		cgroups = append(cgroups, r.Cgroup)
		if !slices.ContainsFunc(v.wrong, func(d decision) bool { return d.Cgroup == r.Cgroup }) {
			delete(k.told, r.Cgroup) // also where it healed by itself
		}
	}
	return cgroups, err == nil && len(v.wrong) == 0
}

// look reads everything; the watches are set before, so that no change is lost.
func (k *Keeper) look(events *watch) (v view, err error) {
	events.add(k.Host.Records.Name())
	list, faults, err := loadRecords(k.Host.Records.FS())
	v.faults = faults
	if err != nil {
		return v, err
	}
	if v.live, v.dead, err = k.Host.split(list); err != nil {
		return v, err
	}
	watched := []string{k.Host.Records.Name()}
	var cgroups []string
	for _, r := range v.live {
		cgroups = append(cgroups, r.Cgroup)
		for _, file := range []string{partitionFile, exclusiveFile, cpusFile, memsFile, "cgroup.events"} {
			watched = append(watched, path.Join(k.Host.Cgroups.Name(), r.Cgroup, file))
		}
		for dir := path.Dir(r.Cgroup); dir != "."; dir = path.Dir(dir) {
			watched = append(watched, path.Join(k.Host.Cgroups.Name(), dir, exclusiveFile))
		}
	}
	events.follow(watched)
	k.last = k.states(cgroups)
	for _, d := range decide(v.live) {
		if err := check(k.Host.Cgroups.FS(), d); err != nil && !hasEnded(k.Host.Cgroups.FS(), d.Cgroup, err) {
			v.wrong, v.causes = append(v.wrong, d), append(v.causes, err)
		}
	}
	return v, nil
}

// check is verify and, as the kernel may go by it later, what was configured.
func check(cgroups fs.FS, d decision) error {
	if err := verify(cgroups, d.Cgroup, d.want); err != nil {
		return err
	}
	if d.want.Partition != PartitionNone {
		if err := checkAncestors(cgroups, d); err != nil {
			return err
		}
	}
	self, err := readGroup(cgroups, d.Cgroup, true)
	if err != nil {
		return err
	}
	p, err := planPin(tree{self}, d.Cgroup, d.want)
	if err != nil || len(p.Writes) == 0 {
		return err
	}
	first := p.Writes[0]
	return fmt.Errorf("%s is not %q", path.Base(first.File), first.Value)
}

// checkAncestors finds the ancestor that lacks CPUs of the partition. Not every
// kernel makes the partition invalid for it, but a later change then loses CPUs.
func checkAncestors(cgroups fs.FS, d decision) error {
	for dir := path.Dir(d.Cgroup); dir != "."; dir = path.Dir(dir) {
		g, err := readGroup(cgroups, dir, false)
		if err != nil {
			return err
		}
		if g.state != member {
			return nil
		}
		if !d.want.CPUs.IsSubsetOf(g.exclusive) {
			return fmt.Errorf("%s of %s is %q", exclusiveFile, dir, g.exclusive)
		}
	}
	return nil
}

// repair looks again under the lock, as a hook may have been at work, and does
// what is to be done. The view is what remains.
func (k *Keeper) repair(events *watch) (view, error) {
	unlock, err := k.Lock()
	if err != nil {
		return view{}, err
	}
	defer unlock()
	v, err := k.look(events)
	if err != nil {
		return v, err
	}
	var errs []error
	for _, r := range v.dead {
		if err := k.Host.bury(r); err != nil {
			errs = append(errs, err)
			continue
		}
		k.Log(fmt.Sprintf("released %s, of claim %s", r.Cgroup, r.names()))
		delete(k.told, r.Cgroup)
	}
	remaining := v
	remaining.wrong, remaining.causes = nil, nil
	for i, err := range k.Host.enforce(v.wrong, v.live) {
		d := v.wrong[i]
		if err != nil {
			remaining.wrong, remaining.causes = append(remaining.wrong, d), append(remaining.causes, err)
			k.tell(d.Cgroup, fmt.Errorf("%s should have %s, of claim %s: %w", d.Cgroup, d.want, d.names(), err))
			continue
		}
		k.Log(fmt.Sprintf("repaired %s, of claim %s: %v", d.Cgroup, d.names(), v.causes[i]))
	}
	return remaining, errors.Join(errs...)
}

// states is a cheap text that changes when a cgroup's partition does, or when
// its last process ends.
func (k *Keeper) states(cgroups []string) string {
	var b strings.Builder
	for _, cgroup := range slices.Sorted(slices.Values(cgroups)) {
		for _, file := range []string{partitionFile, "cgroup.events"} {
			line, err := readLine(k.Host.Cgroups.FS(), path.Join(cgroup, file))
			fmt.Fprintln(&b, cgroup, line, err)
		}
	}
	return b.String()
}

// tell logs what is wrong with something when it is not what was logged last.
func (k *Keeper) tell(about string, err error) {
	switch {
	case err == nil:
		delete(k.told, about)
	case k.told[about] != err.Error():
		if k.told == nil {
			k.told = make(map[string]string)
		}
		k.told[about] = err.Error()
		k.Log(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}
