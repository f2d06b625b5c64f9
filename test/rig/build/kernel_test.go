package build

import "testing"

func TestNewestImageIsOfTheKernelAndFlavour(t *testing.T) {
	packages := []string{
		"linux-image-7.2.9+deb13-amd64", "linux-image-7.2.12+deb13-rt-amd64", "linux-image-7.2.12+deb13-amd64-dbg",
		"linux-image-7.2.11+deb13-amd64", "linux-image-7.2.13+deb13-cloud-amd64", "linux-image-7.20.14+deb13-amd64",
		"linux-image-6.1.0-9-amd64", "linux-image-6.1.0-56-amd64", "linux-image-6.1.0-57-amd64-dbg", "linux-image-6.1.0-58-amd64-unsigned",
		"linux-image-6.1.0-59-rt-amd64", "linux-image-6.12.60+deb12-amd64",
	}
	for name, want := range map[string]string{"7.2": "linux-image-7.2.11+deb13-amd64", "6.1": "linux-image-6.1.0-56-amd64", "7.3": ""} {
		if got := newestImage(name, packages); got != want {
			t.Errorf("newestImage(%s) = %q, want %q", name, got, want)
		}
	}
}
