package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
)

// modeFile has the mode that the last event named, in the plugin directory.
const modeFile = "mode"

// modes are all modes, the strongest first.
var modes = []driver.Exclusivity{driver.ExclusivityKernel, driver.ExclusivityCooperative, driver.ExclusivityNone}

// modeNews tells on the Node that the node has another mode than before. The mode of a
// running daemon does not change, so it has to tell once at most.
type modeNews struct {
	state *os.Root // of the plugin, where the mode is kept across restarts and reboots
	mode  driver.Exclusivity
	why   string // the node has this mode
	told  bool
}

// tell creates the event, if the mode is new. If that fails, the next call tries again.
func (m *modeNews) tell(ctx context.Context, e *events) {
	if m.told {
		return
	}
	if err := m.try(ctx, e); err != nil {
		klog.FromContext(ctx).Error(err, "Telling of the new mode failed, trying again", "node", e.nodeName, "mode", m.mode)
		return
	}
	m.told = true
}

// try saves the mode after the event, so that a daemon that is killed in between tells twice
// and not never.
func (m *modeNews) try(ctx context.Context, e *events) error {
	text, err := m.state.ReadFile(modeFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before := driver.Exclusivity(strings.TrimSpace(string(text)))
	if before == m.mode {
		return nil
	}
	if slices.Contains(modes, before) { // not so at the first start
		isStronger := slices.Index(modes, m.mode) < slices.Index(modes, before)
		kind, reason, note := said(deviceclasses.FaultOf(deviceclasses.FaultModeLost), isStronger)
		if err := e.create(ctx, kind, reason, fmt.Sprintf(note, m.mode, before, m.why)); err != nil {
			return err
		}
	}
	return durable.Replace(m.state, modeFile, []byte(m.mode+"\n"), 0o644)
}
