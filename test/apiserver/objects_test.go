package apiserver

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creator is what every typed client has.
type creator[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// create makes an object that lasts until the test ends.
func create[T metav1.Object](t *testing.T, client creator[T], object T) T {
	t.Helper()
	made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		//nolint:usetesting // the test's own context has ended by now
		if err := client.Delete(context.Background(), made.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete %T %s: %v", made, made.GetName(), err)
		}
	})
	return made
}

// createAll makes objects that last until the test ends.
func createAll[T metav1.Object](t *testing.T, client creator[T], objects []T) {
	t.Helper()
	for _, object := range objects {
		create(t, client, object)
	}
}

// pointers returns a pointer to each item of a list.
func pointers[T any](items []T) (all []*T) {
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}
