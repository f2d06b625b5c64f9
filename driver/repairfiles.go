package driver

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
)

// RepairFiles writes files of the node again that another program has removed: CDI specs of
// claims, without which their containers do not start again, the checkpoint and the first
// values. It returns the names of what it wrote. A claim that is being released has no spec.
// Files that were changed stay for who looks what happened. Call it every half minute: it
// lists a directory and looks for two files.
func (d *Driver) RepairFiles() (written []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return nil, nil
	}
	text, err := d.records.checkpoint(d.config.BootID, d.grants)
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{tuning.FirstName, d.tuning.FirstText()}, {ledger.CheckpointName, text}} {
		if _, err := d.records.dir.Lstat(file.name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.records.replace(file.name, file.text); err != nil {
			return written, fmt.Errorf("write %s again: %w", file.name, err)
		}
		written = append(written, file.name)
	}
	missing, _, err := d.compareSpecs()
	if err != nil {
		return written, err
	}
	for _, grant := range missing {
		if _, ended := d.orphans[grant.UID]; ended || d.releasing[grant.UID] {
			continue
		}
		spec, err := d.planner().spec(grant)
		if err == nil {
			err = d.specs.Write(string(grant.UID), spec)
		}
		if err != nil {
			return written, fmt.Errorf("write CDI spec of claim %s again: %w", grant.FullName(), err)
		}
		written = append(written, "CDI spec of claim "+grant.FullName())
	}
	return written, nil
}

// compareSpecs returns the grants without a CDI spec, and the number of specs without a grant.
func (d *Driver) compareSpecs() (missing ledger.List, extra int, err error) {
	uids, err := d.specs.ClaimUIDs()
	if err != nil {
		return nil, 0, fmt.Errorf("list CDI specs: %w", err)
	}
	written := make(map[string]bool, len(uids))
	for _, uid := range uids {
		written[uid] = true
	}
	for _, grant := range d.grants {
		if !written[string(grant.UID)] {
			missing = append(missing, grant)
		}
		delete(written, string(grant.UID))
	}
	return missing, len(written), nil
}
