package main

import (
	"cmp"
	"flag"
	"path/filepath"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/logging"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
)

// options are the settings of the flags and of the NodeConfig. A feature whose path is
// empty is off.
type options struct {
	nodeName           string
	podUID             string
	kubeletRoot        string
	cdiDir             string
	staticCDIDir       string
	configFile         string
	attached           attached.Selection            // from the NodeConfig
	bindDrivers        string                        // from the NodeConfig: devices.bindDrivers
	zoneBy             string                        // from the NodeConfig
	zoneOrder          string                        // from the NodeConfig
	groups             []string                      // from the NodeConfig
	accounting         string                        // from the NodeConfig
	cpuDrivers         []string                      // from the NodeConfig: otherCPUDrivers
	memoryDrivers      []string                      // from the NodeConfig: otherMemoryDrivers
	numaNodeKeys       []resourceapi.QualifiedName   // from the NodeConfig
	numaNodeLists      string                        // from the NodeConfig
	publishing         string                        // from the NodeConfig
	cpuQuota           string                        // from the NodeConfig
	cachePools         *deviceclasses.CachePools     // from the NodeConfig: cache; nil if caches are not divided
	performance        deviceclasses.NodePerformance // from the NodeConfig
	settings           *deviceclasses.NodeSettings   // all settings of the NodeConfig for this node; nil without a file
	profiled           *profiled                     // of a NodeConfig with profiles; nil without them
	reservedCPUs       string
	reservedIn         string // the flag or field that sets reservedCPUs
	reservedMemory     string
	reservedQuantity   *resource.Quantity                  // reservedMemory or what the NodeConfig says; nil for neither
	reservedHugepages  []deviceclasses.HugepageReservation // from the NodeConfig; nil if it says nothing
	reservedNodeMemory []deviceclasses.MemoryReservation   // from the NodeConfig
	exclude            *deviceclasses.Exclusion            // from the NodeConfig
	fieldOf            func(field string) string           // where the NodeConfig has a field, for errors
	kubeletConfig      string
	hookSource         string
	hookDir            string // "" for the default
	cgroupRoot         string
	machineRoot        string
	madeUp             string // name of a preset that replaces sys and proc of machineRoot
	bindRoot           string
	resctrl            string
	hostProc           string
	performanceRoot    string
	listen             string
	monitoring         monitoring
	keeperDir          string
	kubeconfig         string
	exclusivityMode    string
	nriSocket          string
	logging            logging.Options
	readOnly           bool // write no file
}

func parseFlags(c cli.Call, env func(string) string) (options, error) {
	o := options{}
	if err := c.ParseAll(o.flags(c, env)); err != nil {
		return options{}, err
	}
	return o, o.validate()
}

// flags returns the flags of the daemon. Parsing them sets the options.
func (o *options) flags(c cli.Call, env func(string) string) *flag.FlagSet {
	o.reservedIn = "--reserved-cpus"
	flags := c.Flags()
	flags.StringVar(&o.nodeName, "node-name", env("NODE_NAME"), "`name` of this Node (default: $NODE_NAME)")
	flags.StringVar(&o.podUID, "pod-uid", env("POD_UID"), "`UID` of the daemon's own pod: where its cgroup is found, those of all pods are. Without it, a claim is released only while the cgroups of its pods are there and without processes (default: $POD_UID)")
	hostFlag(flags, "kubelet-root", &o.kubeletRoot)
	hostFlag(flags, "cdi-dir", &o.cdiDir)
	flags.StringVar(&o.staticCDIDir, "static-cdi-dir", "/etc/cdi", "`directory` of static CDI specs, which other programs write; it may be missing")
	flags.StringVar(&o.configFile, "config", "", "`file` with the NodeConfig, read once at the start; a setting must not be both in the file and in a flag")
	flags.StringVar(&o.reservedCPUs, "reserved-cpus", "", "`list` of CPUs that no claim gets, such as 0-1,8 (default: the kubelet's reservedSystemCPUs, else the first core that is not in isolcpus=)")
	flags.StringVar(&o.reservedMemory, "reserved-memory", "", "`quantity` of memory of each NUMA node that no claim gets, such as 256Mi (default: the kubelet's reservedMemory, else 0)")
	flags.StringVar(&o.kubeletConfig, "kubelet-config", "", "configuration `file` of the kubelet, read for reservedSystemCPUs and reservedMemory")
	hostFlag(flags, "hook-dir", &o.hookDir)
	flags.StringVar(&o.hookSource, "hook-source", "/numa-pin", "`file` with the pin hook, which dra-numa probe copies to the host")
	hostFlag(flags, "cgroup-root", &o.cgroupRoot)
	hostFlag(flags, "machine-root", &o.machineRoot)
	flags.StringVar(&o.madeUp, "made-up-machine", "", "`name` of a known machine that the node pretends to have, such as rig; claims get CPUs that there are not, and no container is pinned: for demos, and for who works on schedulers (default: the real machine)")
	flags.StringVar(&o.bindRoot, "bind-root", "/", "`directory` with a writable sys, used only if the NodeConfig lets claims bind drivers")
	hostFlag(flags, "resctrl", &o.resctrl)
	flags.StringVar(&o.hostProc, "host-proc", "", "`directory` with the host's processes: dra-numa state reads their groups of resctrl, and before a kernel driver is bound their mounts (default: no groups, and mounts in --bind-root)")
	hostFlag(flags, "performance-root", &o.performanceRoot)
	flags.StringVar(&o.listen, "listen", ":8089", "`address` and port of the server of /healthz and /readyz")
	flags.StringVar(&o.monitoring.metrics, "metrics-listen", "", "`address` and port of the server of /metrics, such as :8090 (default: no metrics)")
	flags.StringVar(&o.monitoring.certificateFile, "metrics-tls-cert", "", "`file` with the certificate of that server, read again when it changes (default: no TLS)")
	flags.StringVar(&o.monitoring.keyFile, "metrics-tls-key", "", "`file` with the key of that certificate")
	flags.StringVar(&o.monitoring.clientsCAFile, "metrics-client-ca", "", "`file` with the CAs of certificates that clients of that server must have (default: they need none)")
	o.monitoring.policy.AddFlags(flags, "metrics-tls")
	flags.BoolVar(&o.monitoring.cacheUse, "metrics-cache-use", false, "metrics have what claims use of level-3 caches and of memory bandwidth; each scrape interrupts CPUs of claims for a moment")
	flags.StringVar(&o.keeperDir, "keeper-dir", "", "`directory` where the keeper says that it works; the daemon is not ready while it does not (default: the daemon does not look)")
	flags.StringVar(&o.monitoring.pprof, "pprof", "", "loopback `address` and port of the server of Go's profiles, such as 127.0.0.1:6060 (default: no profiles)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: the service account of the pod)")
	flags.StringVar(&o.exclusivityMode, "exclusivity", deviceclasses.ExclusivityAuto, "`mode` of keeping other tasks off the CPUs of claims: kernel (cpuset partitions), cooperative (the container runtime, over NRI), none, or auto for the first one that the node has")
	hostFlag(flags, "nri-socket", &o.nriSocket)
	o.logging.AddFlags(flags)
	return flags
}

// hostFlags are the flags of several commands that say where a part of the host is.
var hostFlags = map[string]struct{ value, usage string }{
	"kubelet-root":     {"/var/lib/kubelet", "root `directory` of the kubelet, which must have the same path in the container and on the host"},
	"cdi-dir":          {"/var/run/cdi", "`directory` where the container runtime looks for CDI specs"},
	"hook-dir":         {"", "`directory` of the pin hook, which must have the same path in the container and on the host (default: plugins/dra.numa-hook in --kubelet-root)"},
	"cgroup-root":      {"/sys/fs/cgroup", "cgroup v2 `directory` of the host"},
	"machine-root":     {"/", "`directory` with sys and proc of the host"},
	"performance-root": {"/", "`directory` with a writable sys/devices/system/cpu and proc/irq, used only if the NodeConfig has performance"},
	"resctrl":          {"/sys/fs/resctrl", "`directory` where resctrl is mounted, writable; used only if the NodeConfig divides or measures caches"},
	"nri-socket":       {"/var/run/nri/nri.sock", "NRI `socket` of the container runtime; an empty value turns NRI off"},
}

// hostFlag adds one of the hostFlags.
func hostFlag(flags *flag.FlagSet, name string, value *string) {
	flags.StringVar(value, name, hostFlags[name].value, hostFlags[name].usage)
}

func (o *options) validate() error {
	if o.nodeName == "" {
		return cli.Usagef("node name is missing: set --node-name or $NODE_NAME")
	}
	if problems := validation.IsDNS1123Subdomain(o.nodeName); len(problems) > 0 {
		return cli.Usagef("--node-name %q: %s", o.nodeName, problems[0])
	}
	for _, path := range []struct{ flag, value string }{
		{"kubelet-root", o.kubeletRoot}, {"cdi-dir", o.cdiDir}, {"hook-dir", cmp.Or(o.hookDir, o.kubeletRoot)},
	} {
		if !filepath.IsAbs(path.value) {
			return cli.Usagef("--%s %q: want an absolute path", path.flag, path.value)
		}
	}
	if modes := append([]string{deviceclasses.ExclusivityAuto}, deviceclasses.Exclusivities()...); !slices.Contains(modes, o.exclusivityMode) {
		return cli.Usagef("--exclusivity %q: allowed are %s", o.exclusivityMode, strings.Join(modes, ", "))
	}
	if err := o.checkMadeUp(); err != nil {
		return err
	}
	if o.exclusivityMode == string(driver.ExclusivityCooperative) && o.nriSocket == "" {
		return cli.Usagef("--exclusivity=cooperative: needs --nri-socket, which is empty")
	}
	if err := o.monitoring.validate(); err != nil {
		return err
	}
	if o.reservedMemory == "" {
		return nil
	}
	quantity, err := resource.ParseQuantity(o.reservedMemory)
	if err != nil || quantity.Sign() < 0 {
		return cli.Usagef("--reserved-memory %q: want a quantity of 0 or more, such as 256Mi", o.reservedMemory)
	}
	o.reservedQuantity = &quantity
	return nil
}

// pluginDir is where the kubelet expects the files of this driver.
func (o *options) pluginDir() string { return filepath.Join(o.kubeletRoot, "plugins", driver.Name) }

// registryDir is where the kubelet looks for plugins.
func (o *options) registryDir() string { return filepath.Join(o.kubeletRoot, "plugins_registry") }
