package snapshot

import (
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// NotServed is the version of DeviceTaintRules in a cluster that serves none.
const NotServed = "none"

// current returns the object in the form that a snapshot holds: a Workload, or a
// DeviceTaintRule of the current version.
func current(object metav1.Object) (metav1.Object, error) {
	rule := &resourceapi.DeviceTaintRule{}
	switch old := object.(type) {
	case *resourcev1beta2.DeviceTaintRule:
		return rule, v1beta2.Convert_v1beta2_DeviceTaintRule_To_v1_DeviceTaintRule(old, rule, nil)
	case *resourcev1alpha3.DeviceTaintRule:
		rule.ObjectMeta, rule.Status.Conditions = old.ObjectMeta, old.Status.Conditions
		if selector := old.Spec.DeviceSelector; selector != nil {
			rule.Spec.DeviceSelector = &resourceapi.DeviceTaintSelector{Driver: selector.Driver, Pool: selector.Pool, Device: selector.Device}
		}
		taint := old.Spec.Taint
		rule.Spec.Taint = resourceapi.DeviceTaint{Key: taint.Key, Value: taint.Value, Effect: resourceapi.DeviceTaintEffect(taint.Effect), TimeAdded: taint.TimeAdded}
		return rule, nil
	}
	if workload := newWorkload(object); workload != nil {
		return workload, nil
	}
	return object, nil
}
