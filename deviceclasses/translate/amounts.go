package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// most is more than any container gets, and small enough to compute with.
const most = int64(1) << 60

// checkAmounts refuses amounts and sizes of pages that cannot be computed with. A tenant can
// write them: a mutating webhook sees a pod before the API server has checked it.
func checkAmounts(pod *corev1.Pod) error {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, list := range []corev1.ResourceList{container.Resources.Limits, container.Resources.Requests} {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				if amount := list[name]; !isPossible(amount) {
					return fmt.Errorf("container %q: %s of %s: want 0 or more, and an amount that a node can have", container.Name, amount.String(), name)
				}
				size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
				if page, err := resource.ParseQuantity(size); huge && err == nil && !isPossible(page) {
					return fmt.Errorf("container %q: %s: want a size of pages, such as 2Mi", container.Name, name)
				}
			}
		}
	}
	return nil
}

func isPossible(amount resource.Quantity) bool {
	return amount.Sign() >= 0 && spelling.Countable(amount) && amount.CmpInt64(most) <= 0
}
