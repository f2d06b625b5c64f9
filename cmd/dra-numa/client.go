package main

import (
	"k8s.io/client-go/kubernetes"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

// newClient returns a client whose requests are counted. Without a kubeconfig, it is that
// of the pod's service account.
func newClient(kubeconfig string, requests *kubeletplugin.APIRequests) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubeletplugin.NewClient(config, requests)
}

// releaseClient also has the API of DaemonSets, which the daemon does without.
type releaseClient struct {
	kubernetes.Interface
	apps *appsv1.AppsV1Client
}

func (c *releaseClient) AppsV1() appsv1.AppsV1Interface { return c.apps }

// newReleaseClient returns the client of commands that hooks of the chart run.
func newReleaseClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	common, err := kubeletplugin.NewClient(config, &kubeletplugin.APIRequests{})
	if err != nil {
		return nil, err
	}
	apps, err := appsv1.NewForConfig(config)
	return &releaseClient{common, apps}, err
}
