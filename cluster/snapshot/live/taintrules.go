package live

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// ruleVersion is a version of DeviceTaintRules.
type ruleVersion struct {
	name string
	page pager.ListPageFunc
	// informer adds an informer to the factory.
	informer func(informers.SharedInformerFactory) cache.SharedIndexInformer
}

// ruleVersions returns all versions, the newest first. Kubernetes 1.36 has no v1, and
// serves the others if an administrator has switched them on.
func (s Source) ruleVersions() []ruleVersion {
	return []ruleVersion{
		{"v1", page(s.Client.ResourceV1().DeviceTaintRules().List), func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Resource().V1().DeviceTaintRules().Informer()
		}},
		{"v1beta2", page(s.Client.ResourceV1beta2().DeviceTaintRules().List), func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Resource().V1beta2().DeviceTaintRules().Informer()
		}},
		{"v1alpha3", page(s.Client.ResourceV1alpha3().DeviceTaintRules().List), func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Resource().V1alpha3().DeviceTaintRules().Informer()
		}},
	}
}

// taintRules lists DeviceTaintRules in the newest version that the API server serves, and
// sets the name of that version. A server that serves none has no rules.
func (s Source) taintRules(version *string) pager.ListPageFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		for _, v := range s.ruleVersions() {
			list, err := v.page(ctx, options)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err == nil {
				*version = v.name
			}
			return list, err
		}
		*version = snapshot.NotServed
		return &resourceapi.DeviceTaintRuleList{}, nil
	}
}
