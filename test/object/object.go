// Package object reads the Kubernetes objects that tests write in YAML.
package object

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// Parse reads an object; a field that it does not have is an error.
func Parse[T any](tb testing.TB, text string) *T {
	tb.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return object
}
