package pin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

const (
	// pollEvery is how often the keeper reads the states of recorded cgroups: not
	// every kernel sends an event each time a partition becomes invalid.
	pollEvery = 500 * time.Millisecond
	// firstRetry is the pause after a failed repair. It doubles up to lastRetry.
	firstRetry, lastRetry = 50 * time.Millisecond, 400 * time.Millisecond
	// alsoEvery is how often the keeper calls Also if no event asks for it.
	alsoEvery = 5 * time.Second

	// liftedEvery is how long nothing more is logged about a quota that was lifted.
	liftedEvery = time.Minute
	// settleTime lets all events of one hook arrive before the keeper looks.
	settleTime = 20 * time.Millisecond
)

// Keeper keeps every recorded cgroup as it should be. For dead cgroups, it releases what
// they left and removes their records. It gives the kernel's workqueues back the CPUs of
// isolated partitions that have ended. It holds the host's lock only while it repairs
// or releases.
type Keeper struct {
	Host Host
	Lock func() (unlock func(), err error)
	Log  func(line string) // gets one line for each release, repair and new fault
	// Booted is when the current boot began. Run removes unreadable records of another boot,
	// whose cgroups no longer exist. The time of the file counts only if it does not say which
	// boot it is of: a power failure may have left empty files, but a clock that is set later
	// makes files of this boot look older.
	Booted time.Time
	// Also is other work of the process; nil: there is none. Run calls it when entries of
	// the directories AlsoOn come and go, and each alsoEvery. It logs its errors.
	Also   func() error
	AlsoOn []string

	counts Counts               // what it has done
	told   map[string]string    // what was last logged about a cgroup, the records or inotify, while that is at fault
	states kernelfs.FirstLines  // of the recorded cgroups at the last look
	lifted map[string]time.Time // when it was last logged that the quota of a file was lifted
	asked  time.Time            // when Also was last called
}

// Run keeps the recorded cgroups as they should be until the context ends, which it
// notices within half a second. Then it leaves everything as it is.
func (k *Keeper) Run(ctx context.Context) {
	var events watch
	var beat *kernelfs.Pulse
	defer func() {
		events.close()
		if beat != nil {
			_ = beat.Close() // it ends with the process, too
		}
	}()
	defer k.states.Close()
	k.tell("old records", k.removeUnreadable())
	retry := firstRetry
	for ctx.Err() == nil {
		if !events.available {
			beat = k.listen(&events, beat)
		}
		k.also()
		if k.pass(ctx, &events) {
			retry = firstRetry
			k.await(ctx, &events, beat)
			continue
		}
		// The keeper's own attempts cause events too: only time starts the next one.
		sleep(ctx, retry)
		retry = min(2*retry, lastRetry)
	}
}

// listen begins to watch, and returns the pulse to wait for. Without inotify it is tried again at
// the next look: containers that end give instances back.
func (k *Keeper) listen(events *watch, beat *kernelfs.Pulse) *kernelfs.Pulse {
	begun, err := newWatch()
	k.tell("inotify", err)
	if err != nil && beat != nil {
		return beat
	}
	if beat != nil {
		_ = beat.Close()
	}
	*events = begun
	beat, err = kernelfs.NewPulse(pollEvery, begun.files()...)
	k.tell("timer", err)
	return beat
}

// removeUnreadable removes unreadable records of another boot. It holds the host's lock for
// each, as a hook may be about to replace it.
func (k *Keeper) removeUnreadable() error {
	entries, err := fs.ReadDir(k.Host.Records.FS(), ".")
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), recordSuffix) || k.unreadable(entry.Name()) == nil {
			continue
		}
		unlock, err := k.Lock()
		if err != nil {
			return err
		}
		why := k.unreadable(entry.Name())
		if why != nil {
			err = k.Host.Records.Remove(entry.Name())
		}
		unlock()
		if err != nil {
			return fmt.Errorf("remove record %q of another boot: %w", entry.Name(), err)
		}
		if why != nil {
			k.Log(fmt.Sprintf("removed record %q of another boot, which could not be read: %v", entry.Name(), why))
		}
	}
	return err
}

// unreadable returns why a record of another boot cannot be read.
func (k *Keeper) unreadable(name string) error {
	records := k.Host.Records.FS()
	info, err := fs.Lstat(records, name)
	if err != nil {
		return nil
	}
	entry := fs.FileInfoToDirEntry(info)
	o, err := readOutline(records, entry)
	if err != nil || o.Boot == k.Host.Boot || o.Boot == "" && !info.ModTime().Before(k.Booted) {
		return nil
	}
	_, err = loadRecord(records, entry)
	return err
}

// await returns when there may be something to do, or when the context ends.
func (k *Keeper) await(ctx context.Context, events *watch, beat *kernelfs.Pulse) {
	for ctx.Err() == nil {
		if beat == nil {
			sleep(ctx, pollEvery)
		} else {
			beat.Wait()
		}
		if events.available && events.poll() {
			sleep(ctx, settleTime)
			return
		}
		if time.Since(k.asked) >= alsoEvery {
			k.also()
		}
		if !events.complete || k.states.Changed(k.Host.Cgroups.FS()) {
			return
		}
	}
}

func (k *Keeper) also() {
	if k.Also != nil {
		k.tell("other work", k.Also())
	}
	k.asked = time.Now()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// view is what one look at the records and the kernel found.
type view struct {
	live   []record
	dead   []record
	wrong  []decision
	causes []error // of wrong, in the same order
	await  []waiting
	faults []error // of files that are not valid records, and of cgroups that do not say whether they have a process
	due    bool    // CPUs of the kernel's workqueues are to be taken or given back
	quotas bool    // CPU quotas are to be lifted
}

// pass looks and, if something is wrong, repairs it under the lock. It returns whether all
// recorded cgroups are as they should be.
func (k *Keeper) pass(ctx context.Context, events *watch) (healthy bool) {
	v, err := k.look(events)
	looked := err == nil
	if looked && (len(v.dead)+len(v.wrong) > 0 || v.due || v.quotas) && ctx.Err() == nil {
		err = k.repair(events, &v)
	}
	if looked {
		k.counts.Unrepaired = len(v.wrong) + len(v.await)
	}
	k.tell("records", errors.Join(append(v.faults, err)...))
	for _, w := range v.await {
		k.tell(w.Cgroup, w.err())
	}
	for _, r := range v.live {
		if !v.isFaulty(r) {
			delete(k.told, r.Cgroup) // also if it recovered without a repair
		}
	}
	return err == nil && len(v.wrong)+len(v.await) == 0
}

func (v view) isFaulty(r record) bool {
	return slices.ContainsFunc(v.wrong, func(d decision) bool { return d.Cgroup == r.Cgroup }) ||
		slices.ContainsFunc(v.await, func(w waiting) bool { return w.Cgroup == r.Cgroup })
}

// look reads everything. It sets the watches first, so that no change is lost.
func (k *Keeper) look(events *watch) (v view, err error) {
	events.add(k.Host.Records.Name(), dirMask)
	list, faults, err := loadRecords(k.Host.Records.FS())
	v.faults = faults
	if err != nil {
		return v, err
	}
	v.live, v.dead, faults = split(k.Host.Cgroups.FS(), k.Host.Boot, list)
	v.faults = append(v.faults, faults...)
	mount := k.Host.Cgroups.Name()
	events.follow(append([]string{k.Host.Records.Name()}, k.AlsoOn...), append(recordedFiles(mount, v.live), quotaFiles(mount, v.live)...))
	k.states.Follow(k.Host.Cgroups.FS(), stateFiles(v.live))
	for _, d := range decide(v.live) {
		switch err := check(k.Host.Cgroups.FS(), d); {
		case err == nil || hasEnded(k.Host.Cgroups.FS(), d.Cgroup, err):
		case k.Host.lacksOnlyOffline(d):
			v.await = append(v.await, waiting{d, err})
		default:
			v.wrong, v.causes = append(v.wrong, d), append(v.causes, err)
		}
	}
	mask, err := k.Host.readWorkqueues(v.live)
	v.due = err != nil || !mask.settled() // repair says what is wrong, and does the rest
	for _, r := range v.live {
		writes, err := quotaWrites(k.Host.Cgroups.FS(), r)
		v.quotas = v.quotas || err != nil || len(writes) > 0
	}
	return v, nil
}

// check does what verify does. It also compares the configured values, because the
// kernel may use them later.
func check(cgroups fs.FS, d decision) error {
	if err := verify(cgroups, d.Cgroup, d.want); err != nil {
		return err
	}
	return checkConfigured(cgroups, d)
}

func checkConfigured(cgroups fs.FS, d decision) error {
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
	return differs(path.Base(first.File), "is not %q", first.Value)
}

// checkAncestors returns an error if the cpuset.cpus.exclusive of an ancestor lacks CPUs
// of the partition. Not every kernel then makes the partition invalid, but a later
// change loses CPUs.
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
			return differs(exclusiveFile, "of %s is %q, which lacks CPUs of the partition", dir, g.exclusive)
		}
	}
	return nil
}

// repair looks again under the lock, because a hook may have been at work. Then it
// releases what dead cgroups left, and repairs. In seen, which becomes the second view,
// wrong has only what it could not repair. If there is no second view, seen stays as it is.
func (k *Keeper) repair(events *watch, seen *view) error {
	unlock, err := k.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	v, err := k.look(events)
	if err != nil {
		return err
	}
	var errs []error
	if _, err := k.Host.resetReclaim(); err != nil { // a process that was killed in a reclaim has left a record, too
		errs = append(errs, err)
	}
	for _, r := range v.dead {
		if err := k.Host.bury(r); err != nil {
			errs = append(errs, err)
			continue
		}
		k.counts.Releases++
		k.Log(fmt.Sprintf("released cgroup %s of claim %s", r.Cgroup, r.names()))
		delete(k.told, r.Cgroup)
	}
	if err := k.Host.settleWorkqueues(v.live); err != nil {
		errs = append(errs, err)
	}
	*seen = v
	seen.wrong, seen.causes = nil, nil
	for i, err := range k.Host.enforce(v.wrong, v.live) {
		d := v.wrong[i]
		if err != nil {
			seen.wrong, seen.causes = append(seen.wrong, d), append(seen.causes, err)
			k.tell(d.Cgroup, shouldHave(d, err))
			continue
		}
		k.counts.repaired(v.causes[i])
		k.Log(fmt.Sprintf("repaired cgroup %s of claim %s: %v", d.Cgroup, d.names(), v.causes[i]))
	}
	lifted, err := k.Host.settleQuotas(v.live, quotaWrites)
	k.tellLifted(lifted, time.Now())
	k.tell("quotas", err) // no reason to look again soon: the next write to the file is an event
	return errors.Join(errs...)
}

// tellLifted logs what was lifted, each file at most once in liftedEvery: a program may write it
// again and again.
func (k *Keeper) tellLifted(lifted []Write, now time.Time) {
	maps.DeleteFunc(k.lifted, func(_ string, told time.Time) bool { return now.Sub(told) >= liftedEvery })
	for _, w := range lifted {
		if _, told := k.lifted[w.File]; told {
			continue
		}
		if k.lifted == nil {
			k.lifted = make(map[string]time.Time)
		}
		k.lifted[w.File] = now
		k.Log(fmt.Sprintf("lifted a CPU quota that only throttles: %s <- %s", w.File, w.Value))
	}
}

// tell logs err, unless it is what was last logged about the same thing.
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
