package deps

// arrow permits shipped package from to import our package to. Paths are below
// the module's.
type arrow struct{ from, to, why string }

// arrows are all that shipped code has. They point down only: cmd to
// kubeletplugin to driver to cdi and deviceclasses to numa; simulate knows the
// objects of a cluster and none of these.
var arrows = []arrow{
	{"cmd/dra-numa", "cmd/internal/cli", "flags and errors are as in the other daemon"},
	{"cmd/dra-numa", "kubeletplugin", "the daemon serves the kubelet"},
	{"cmd/dra-numa", "kubeletplugin/nri", "the daemon talks to the container runtime"},
	{"cmd/dra-numa", "deviceclasses", "a NodeConfig is a file that it is given"},
	{"cmd/dra-numa", "driver/attached", "it compiles what a NodeConfig selects"},
	{"cmd/dra-numa", "driver", "flags become the driver's configuration"},
	{"cmd/dra-numa", "cdi", "the daemon holds the CDI folder"},
	{"cmd/dra-numa", "cdi/pin", "the daemon probes for partitions at start"},
	{"cmd/dra-numa", "numa", "the daemon reads the machine it runs on"},
	{"cmd/dra-numa", "numa/cpuset", "reserved CPUs are a flag"},
	{"cmd/numa-webhook", "cmd/internal/cli", "flags and errors are as in the other daemon"},
	{"cmd/numa-webhook", "webhook", "the command is flags around it"},
	{"cmd/numa-pin", "cdi/pin", "the hook is flags around it"},
	{"cmd/numa-pin", "numa/cpuset", "CPUs and mems are flags"},
	{"cmd/kubectl-numa", "deviceclasses", "a NodeConfig is a file that it is given"},
	{"cmd/kubectl-numa", "driver", "the slices that it prints are the driver's"},
	{"cmd/kubectl-numa", "driver/attached", "it compiles what a NodeConfig selects"},
	{"cmd/kubectl-numa", "numa", "it reads machines"},
	{"cmd/kubectl-numa", "simulate", "it says where pods would go, and why not"},
	{"cmd/kubectl-numa", "simulate/snapshot", "the objects of a cluster are files that it is given"},
	{"cmd/kubectl-numa", "numa/cpuset", "CPUs are flags and answers"},
	{"cmd/kubectl-numa", "numa/draw", "it shows machines"},
	{"cmd/kubectl-numa", "numa/pick", "it says what a claim would get"},
	{"kubeletplugin", "driver", "it translates the kubelet's calls for the driver"},
	{"kubeletplugin", "deviceclasses", "the status of a claim says what its configuration asked for"},
	{"kubeletplugin", "cdi/pin", "what the kernel honours of a claim's cgroups becomes taints, health and events"},
	{"kubeletplugin/nri", "driver", "what a claim gives a container is the driver's word"},
	{"kubeletplugin/nri", "numa/cpuset", "what the runtime is told are CPUs and mems"},
	{"driver", "deviceclasses", "how a claim uses its CPUs is a ZoneConfig"},
	{"webhook", "deviceclasses/books", "pods request what their claims hold"},
	{"webhook", "deviceclasses/lint", "what is wrong with an object is said there"},
	{"driver", "cdi", "a prepared claim is a CDI spec"},
	{"driver", "driver/attached", "PCI functions are published beside zones"},
	{"driver", "numa", "what is published is the machine"},
	{"driver", "numa/cpuset", "what a claim holds is CPUs and mems"},
	{"driver", "numa/pick", "a grant's CPUs are picked by it"},
	{"deviceclasses/lint", "deviceclasses", "opaque parameters are decoded as the driver does"},
	{"deviceclasses/lint", "deviceclasses/books", "a pod's requests are compared with its claims"},
	{"simulate", "simulate/snapshot", "what it places pods on is a snapshot of a cluster"},
	{"driver/attached", "deviceclasses", "a NodeConfig selects what is published"},
	{"driver/attached", "numa", "it makes devices of PCI functions"},
	{"deviceclasses", "numa/cpuset", "reserved CPUs are checked where they are read"},
	{"cdi", "numa/cpuset", "specs carry CPUs and mems"},
	{"cdi/pin", "numa/cpuset", "cgroups are given CPUs and mems"},
	{"numa", "numa/cpuset", "zones, cores and caches are sets of CPUs"},
	{"numa/draw", "numa", "what it draws is a machine"},
	{"numa/draw", "numa/cpuset", "drawings and documents have sets of CPUs"},
	{"numa/fake", "numa/cpuset", "declarations name CPUs, files list them"},
	{"numa/pick", "numa", "it picks from the cores and caches of a machine"},
	{"numa/pick", "numa/cpuset", "what is free and what is picked are sets"},
}

// module permits the packages in folders, and those below them, to import a
// module that is not ours. The folder "test" also stands for test files
// anywhere.
type module struct {
	path    string
	folders []string
	why     string
}

// modules are all direct ones of this go.mod.
var modules = []module{
	{"k8s.io/api", []string{"driver", "kubeletplugin", "deviceclasses", "simulate", "cmd/dra-numa", "cmd/kubectl-numa", "test", "webhook"}, "the types of claims, slices and classes"},
	{"k8s.io/apimachinery", []string{"cdi", "driver", "kubeletplugin", "deviceclasses", "simulate", "cmd/dra-numa", "cmd/kubectl-numa", "test", "webhook"}, "metadata, quantities and API errors"},
	{"k8s.io/client-go", []string{"kubeletplugin", "cmd/dra-numa", "cmd/numa-webhook", "test", "webhook"}, "the API server's client"},
	{"k8s.io/component-helpers", []string{"simulate", "deviceclasses/books"}, "what a pod requests, and which nodes and taints suit it, as the scheduler sees it"},
	{"k8s.io/dynamic-resource-allocation", []string{"driver", "kubeletplugin", "simulate", "test", "deviceclasses/lint"}, "the kubelet helper, its slice controller, the CEL of classes, and the scheduler's allocator"},
	{"k8s.io/klog/v2", []string{"kubeletplugin", "simulate", "cmd/dra-numa", "cmd/internal/cli", "test", "webhook"}, "the logger that helpers of Kubernetes take"},
	{"k8s.io/utils", []string{"driver", "kubeletplugin", "simulate", "test", "deviceclasses/lint"}, "pointers to values, as optional API fields are"},
	{"sigs.k8s.io/json", []string{"deviceclasses", "simulate"}, "names the fields of a configuration or an object that nobody knows; encoding/json takes any case"},
	{"sigs.k8s.io/yaml", []string{"driver", "deviceclasses", "simulate", "cmd/dra-numa", "cmd/kubectl-numa", "test"}, "YAML into Kubernetes types, and back"},
	{"github.com/spf13/cobra", []string{"cmd/kubectl-numa"}, "commands, their help and their completion in shells"},
	{"golang.org/x/term", []string{"cmd/kubectl-numa"}, "whether there is a terminal, and how wide"},
	{"tags.cncf.io/container-device-interface", []string{"test"}, "our spec files read as a container runtime reads them"},
	{"tags.cncf.io/container-device-interface/specs-go", []string{"cdi", "test"}, "the types of CDI spec files"},
	{"github.com/containerd/nri", []string{"kubeletplugin/nri", "test"}, "the container runtime's plugin interface"},
	{"google.golang.org/grpc", []string{"test"}, "the kubelet's side of the plugin's socket"},
	{"k8s.io/kubelet", []string{"test"}, "the kubelet's side of the plugin's socket"},
	{"github.com/google/cel-go", []string{"driver/attached"}, "where in an expression a name stands that no device has; the CEL of classes does not look"},
	{"github.com/u-root/u-root", []string{"driver/attached"}, "names of PCI vendors and products, compiled in: no file of the host, the same on each node"},
	{"github.com/google/go-cmp", []string{"test"}, "readable differences in tests"},
	{"github.com/onsi/ginkgo/v2", []string{"test"}, "the e2e suite"},
	{"github.com/onsi/gomega", []string{"test"}, "the e2e suite's polling"},
}

// hookImports is everything but the standard library in the hook numa-pin,
// which runs at every container start and must stay small.
var hookImports = []string{"cdi/pin", "cmd/numa-pin", "numa/cpuset"}
