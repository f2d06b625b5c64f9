package build

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A version that lacks programs has those of the default version, also when these are built
// again.
func TestOtherProgramsAreThoseOfTheDefaultVersion(t *testing.T) {
	for version, r := range releases {
		c := Cache{Dir: t.TempDir(), Source: "../../.."}
		sets, err := c.controlPlane(version)
		if err != nil {
			t.Fatal(err)
		}
		var built []string
		for _, set := range sets {
			if strings.HasPrefix(set.out, "kubernetes/") {
				for _, program := range set.packages {
					built = append(built, set.out+program[strings.LastIndex(program, "/")+1:])
				}
			}
		}
		if err := os.MkdirAll(c.KubernetesDir(version), 0o755); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.others(version); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range kubernetesPrograms {
			want := "kubernetes/" + version + "/" + name
			if !slices.Contains(r.programs, name) {
				want = "kubernetes/" + DefaultKubernetes + "/" + name
				if link, err := os.Readlink(c.KubernetesDir(version) + "/" + name); err != nil || link != "../"+DefaultKubernetes+"/"+name {
					t.Errorf("%s of %s is a link to %q, %v", name, version, link, err)
				}
			}
			if !slices.Contains(built, want) {
				t.Errorf("for %s, %q are built, want %s", version, built, want)
			}
		}
	}
}

// The beta's version is in its programs whole: clients compare it.
func TestProgramsSayTheVersionOfTheirModule(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Source: "../../.."}
	for version, want := range map[string]string{"1.36": "gitVersion=v1.36.", "1.38": "gitVersion=v1.38.0-beta."} {
		b, err := c.kubernetes(version, "out/", "kube-scheduler")
		if err != nil || !strings.Contains(b.ldflags, want) {
			t.Errorf("%s is built with %q, %v, want %s", version, b.ldflags, err, want)
		}
	}
}
