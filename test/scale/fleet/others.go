package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// askPeriod is how often another user asks. Each request is a write, which waits for etcd
// too, followed by a read.
const askPeriod = 50 * time.Millisecond

// askAsAnother writes and reads an object of its own until asking ends. It returns how long
// each request took, with the last one.
func (f *Fleet) askAsAnother(ctx, asking context.Context) (took []time.Duration, err error) {
	maps := f.others.CoreV1().ConfigMaps(Namespace)
	object, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "another-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the object of another user: %w", err)
	}
	every := time.NewTicker(askPeriod)
	defer every.Stop()
	for i := 0; ; i++ {
		select {
		case <-asking.Done():
			return took, nil
		case <-every.C:
		}
		began := time.Now()
		if i%2 == 0 {
			object.Data = map[string]string{"round": fmt.Sprint(i)}
			object, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		} else {
			object, err = maps.Get(ctx, object.Name, metav1.GetOptions{})
		}
		if err != nil {
			return nil, fmt.Errorf("use the object of another user: %w", err)
		}
		took = append(took, time.Since(began))
	}
}
