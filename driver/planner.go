package driver

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
)

// planner decides what claims get, from what the Driver has at one moment. It reads the host,
// and changes nothing.
type planner struct {
	*layout
	config    *Config
	grants    ledger.List
	orphans   map[types.UID]string // as in Driver
	blocked   []Held               // as in Driver
	loaded    *ledger.Record       // as in Driver
	policies  func() error         // as in SetMemoryPolicies; may be nil
	functions *functions
	dividing  *dividing.State
	tuning    *tuning.State
}

// planner returns what decides now. The caller holds the lock.
func (d *Driver) planner() *planner {
	p := &planner{
		layout: d.layout, config: &d.config, grants: d.grants, orphans: d.orphans, blocked: d.blocked, loaded: &d.loaded,
		functions: d.functions, dividing: d.dividing, tuning: d.tuning,
	}
	if missing := d.policies.Load(); missing != nil {
		p.policies = *missing
	}
	return p
}
