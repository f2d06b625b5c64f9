package metrics

import (
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

// collectOperations is what the daemon has done, and how long that took.
func (e *Exporter) collectOperations(out sink, d *driver.Driver, figures kubeletplugin.Figures) {
	f := e.families
	for operation, calls := range map[string]kubeletplugin.Calls{"prepare": figures.Prepare, "unprepare": figures.Unprepare} {
		out.addDurations(f.operations, calls.Done, operation, "ok")
		out.addDurations(f.operations, calls.Failed, operation, "error")
	}
	out.add(f.busy, d.Busy().Seconds())
	for file, writes := range map[string]driver.Writes{"checkpoint": d.CheckpointWrites(), "cdi": d.SpecWrites()} {
		out.addDurations(f.syncs, writes.Syncs, file)
		out.add(f.written, float64(writes.Bytes), file)
	}
	if found, err := d.Mismatches(); err == nil { // else it is not known now, which the next scrape may be
		out.add(f.mismatches, oneIf(found.Checkpoint), "checkpoint")
		out.add(f.mismatches, float64(found.MissingSpecs), "missing_spec")
		out.add(f.mismatches, float64(found.ExtraSpecs), "stray_spec")
	}
}

// collectHost is what the kubelet, the kernel and the container runtime do for the daemon.
func (e *Exporter) collectHost(out sink, d *driver.Driver, figures kubeletplugin.Figures) {
	f := e.families
	out.add(f.exclusivity, 1, string(d.Config().Exclusivity))
	out.add(f.registered, oneIf(figures.Registered))
	out.add(f.paused, oneIf(figures.Paused))
	for setting := range d.Unmet() {
		out.add(f.unmet, 1, setting)
	}
	for _, state := range kubeletplugin.CgroupStates() {
		out.add(f.cgroups, float64(figures.Cgroups[state]), string(state))
	}
	out.add(f.refusals, float64(figures.Refusals))
	if figures.Runtime != kubeletplugin.RuntimeUnused {
		out.add(f.runtimeConnected, oneIf(figures.Runtime != kubeletplugin.RuntimeDisconnected))
		out.add(f.runtimeRefused, oneIf(figures.Runtime == kubeletplugin.RuntimeRefused))
		out.add(f.unexplained, float64(figures.Unexplained))
	}
}

// collectRequests counts requests to the API server.
func (e *Exporter) collectRequests(out sink) {
	for request, count := range e.options.Requests.Read() {
		out.add(e.families.serverRequests, float64(count), request.Verb, request.Resource, strconv.Itoa(request.Code))
	}
}

// collectKeeper is what the keeper says. Without a heartbeat, there is nothing.
func (e *Exporter) collectKeeper(out sink) {
	if e.options.Keeper == nil {
		return
	}
	beat, err := e.options.Keeper()
	if err != nil {
		return
	}
	out.add(e.families.heartbeat, float64(beat.At.UnixMilli())/1000)
	for _, cause := range pin.Causes() {
		out.add(e.families.repairs, float64(beat.Repairs[string(cause)]), string(cause))
	}
	out.add(e.families.releases, float64(beat.Releases))
	out.add(e.families.unrepaired, float64(beat.Unrepaired))
}
