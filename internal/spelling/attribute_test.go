package spelling

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

func TestFullName(t *testing.T) {
	for name, want := range map[resourceapi.QualifiedName]resourceapi.FullyQualifiedName{
		"socket":                          "dra.numa/socket",
		"dra.numa/socket":                 "dra.numa/socket",
		"resource.kubernetes.io/numaNode": "resource.kubernetes.io/numaNode",
		"":                                "dra.numa/",
	} {
		if got := FullName("dra.numa", name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestAttribute(t *testing.T) {
	type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	one, two := resourceapi.DeviceAttribute{IntValue: new(int64(1))}, resourceapi.DeviceAttribute{IntValue: new(int64(2))}
	for name, row := range map[string]struct {
		driver string
		has    attributes
		want   *int64
	}{
		"without the domain":                   {"dra.numa", attributes{"socket": one}, one.IntValue},
		"with the domain":                      {"dra.numa", attributes{"dra.numa/socket": one}, one.IntValue},
		"both":                                 {"dra.numa", attributes{"dra.numa/socket": one, "socket": two}, one.IntValue},
		"another":                              {"dra.numa", attributes{"sockets": one, "other/socket": one}, nil},
		"of no device":                         {"dra.numa", nil, nil},
		"of another driver, with our domain":   {"gpu.example.com", attributes{"dra.numa/socket": one}, one.IntValue},
		"of another driver, without a domain":  {"gpu.example.com", attributes{"socket": one}, nil},
		"of a driver whose name begins as our": {"dra.numa.example.com", attributes{"socket": one}, nil},
		"of a driver without a name":           {"", attributes{"socket": one}, nil},
	} {
		got, has := Attribute(row.driver, row.has, "dra.numa/socket")
		if got.IntValue != row.want || has != (row.want != nil) {
			t.Errorf("%s: %v %t, want %v", name, got.IntValue, has, row.want)
		}
	}
}
