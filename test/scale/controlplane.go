package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/build"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/cluster"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// flags are those of the control plane that differ from other clusters of the rig. The
// clients of scheduler and controllers have no limit of their own, which would hide how
// long a pod takes. Without the node-lifecycle controller, nodes need no heartbeats.
func flags() map[string][]string {
	unlimited := []string{"--kube-api-qps=10000", "--kube-api-burst=10000"}
	return map[string][]string{
		"scheduler":          unlimited,
		"controller-manager": append(unlimited, "--controllers=*,-node-lifecycle-controller"),
	}
}

// start starts the control plane, and gives the trials its client and its processes.
func (c config) start(ctx context.Context, on *trial.Cluster) (down func() error, err error) {
	r, err := c.startCluster(ctx)
	if err != nil {
		return nil, err
	}
	for name, process := range map[string]*int{"scheduler": &on.Processes.Scheduler, "apiserver": &on.Processes.APIServer, "etcd": &on.Processes.Etcd} {
		if *process, err = r.Process(name); err != nil {
			return nil, err
		}
	}
	config, err := configOf(r)
	if err != nil {
		return nil, err
	}
	if on.Client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if on.Scheduler.Client, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	scheduler := fmt.Sprintf("https://127.0.0.1:%d", r.Ports.Scheduler)
	on.Scheduler.Piece, on.Scheduler.URL = 5*time.Second, scheduler+"/debug/pprof/profile"
	on.Metrics = trial.Metrics{Client: on.Scheduler.Client, URL: scheduler + "/metrics"}
	return func() error { return cluster.Down(r.Dir, os.Stderr) }, nil
}

// build builds what is missing of the control plane, in the home of all clusters.
func (c config) build(ctx context.Context) (home string, made build.Cache, err error) {
	repository, err := filepath.Abs(c.repository)
	if err != nil {
		return "", made, err
	}
	if home, err = cluster.Home(); err != nil {
		return "", made, err
	}
	made = build.Cache{Dir: build.Dir(home), Source: repository, Log: os.Stderr}
	if err := os.MkdirAll(made.Dir, 0o755); err != nil {
		return "", made, err
	}
	return home, made, made.ControlPlane(ctx, c.kubernetes)
}

// startCluster builds what is missing, and starts the control plane. If a later step
// fails, the cluster stays: its logs say why, and make stops it.
func (c config) startCluster(ctx context.Context) (*cluster.Cluster, error) {
	home, made, err := c.build(ctx)
	if err != nil {
		return nil, err
	}
	r, err := cluster.New(cluster.Dir(home, c.name), 0, 100, os.Stderr)
	if err != nil {
		return nil, err
	}
	proxy := filepath.Join(made.Source, "bin", "cluster")
	if err := r.StartControlPlane(ctx, made.Path("bin"), made.KubernetesDir(c.kubernetes), proxy, "", flags()); err != nil {
		return nil, fmt.Errorf("%w (logs: %s)", err, r.Path("logs"))
	}
	return r, nil
}

// configOf is that of clients without a limit, which encode objects as the API server's
// own clients do.
func configOf(r *cluster.Cluster) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.Path("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}
