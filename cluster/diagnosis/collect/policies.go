package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// policies lists the configurations of NRI resource policies: the objects of each resource of
// their API group whose name ends with policies. Most clusters have no such group.
func (c *collector) policies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	group := "/apis/" + diagnosis.PolicyGroup + "/" + diagnosis.PolicyVersion
	served, err := c.served(ctx, group)
	if err != nil {
		c.unread("", "kube-apiserver", "resources of "+diagnosis.PolicyGroup, err)
		return
	}
	for _, resource := range served {
		if !strings.HasSuffix(resource.Name, "policies") {
			continue
		}
		var list metav1.PartialObjectMetadataList
		if err := c.read(ctx, group+"/"+resource.Name, &list); err != nil {
			c.unread("", "kube-apiserver", resource.Name+"."+diagnosis.PolicyGroup, err)
			continue
		}
		for _, policy := range list.Items {
			c.facts.Policies = append(c.facts.Policies, fmt.Sprintf("%s %s/%s", resource.Kind, policy.Namespace, policy.Name))
		}
	}
}

// served returns the resources of a version of an API group; none if there is no such group.
func (c *collector) served(ctx context.Context, group string) ([]metav1.APIResource, error) {
	var list metav1.APIResourceList
	if err := c.read(ctx, group, &list); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return list.APIResources, nil
}

// read reads an object for which the client has no type.
func (c *collector) read(ctx context.Context, path string, object any) error {
	text, err := raw(ctx, c.client.Discovery().RESTClient().Get().AbsPath(path))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, object)
}
