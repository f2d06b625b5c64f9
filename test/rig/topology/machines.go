package topology

import _ "embed"

// Default is the topology file of a machine with four NUMA nodes of 4 CPUs and 1 GiB
// each.
//
//go:embed machines/default.yaml
var Default []byte
