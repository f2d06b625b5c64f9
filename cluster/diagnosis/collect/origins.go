package collect

import (
	"bytes"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/migration"
)

// Origins reads what there is besides pods and nodes of a cluster that is to be migrated: the
// configurations of the kubelets of nodes, and objects of operators.
func Origins(ctx context.Context, client kubernetes.Interface, nodes []string) (sources []migration.Source, unread []diagnosis.Unread) {
	c := &collector{client: client, facts: &diagnosis.Facts{}}
	answers, lacking := askNodes(ctx, c.facts, nodes, "kubelet", "configz", func(ctx context.Context, node string) ([]migration.Source, error) {
		text, err := c.configz(ctx, node)
		if err != nil {
			return nil, err
		}
		return migration.Read("configz", bytes.NewReader(text))
	})
	for _, node := range nodes {
		for _, source := range answers[node] {
			source.Node = node
			sources = append(sources, source)
		}
	}
	for _, resource := range migration.Resources() {
		list, err := c.list(ctx, resource)
		if err != nil {
			c.unread("", "kube-apiserver", resource.Name+"."+resource.Group, err)
		}
		sources = append(sources, list...)
	}
	return sources, append(lacking, c.facts.Unread...)
}

// list lists the objects of a resource; none if it is not served.
func (c *collector) list(ctx context.Context, resource migration.Resource) ([]migration.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	group := "/apis/" + resource.Group + "/" + resource.Version
	served, err := c.served(ctx, group)
	if err != nil || !slices.ContainsFunc(served, func(r metav1.APIResource) bool { return r.Name == resource.Name }) {
		return nil, err
	}
	text, err := raw(ctx, c.client.Discovery().RESTClient().Get().AbsPath(group+"/"+resource.Name))
	if err != nil {
		return nil, err
	}
	return migration.Read(resource.Name, bytes.NewReader(text))
}
