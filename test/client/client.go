// Package client reaches the cluster that the end-to-end tests and the demo talk to, and
// applies manifests there. It starts no cluster and knows nothing of NUMA.
package client

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster holds the clients of one cluster.
type Cluster struct {
	// Config is what every client was made from.
	Config *rest.Config
	// Kubernetes is the typed client.
	Kubernetes kubernetes.Interface

	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

// DefaultKubeconfig returns the path in KUBECONFIG, else that of the test rig's
// cluster, whether the file exists or not.
func DefaultKubeconfig() string {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return path
	}
	rig := os.Getenv("RIG_DIR")
	if rig == "" {
		cache, _ := os.UserCacheDir() // as the rig does
		rig = filepath.Join(cache, "dra-driver-numa", "rig")
	}
	return filepath.Join(rig, "run", "default", "admin.kubeconfig")
}

// New makes the clients of the cluster that a kubeconfig file names. It does
// not talk to the cluster.
func New(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 50, 100 // the tests poll
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", config.Host, err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make dynamic client for %s: %w", config.Host, err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery()))
	return &Cluster{Config: config, Kubernetes: typed, dynamic: untyped, mapper: mapper}, nil
}
