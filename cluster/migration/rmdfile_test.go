package migration

import (
	"slices"
	"strings"
	"testing"
)

// A daemon has its pools in its file. Without a section, it has its defaults.
func TestPoolsOfADaemon(t *testing.T) {
	kubelet := sources(t, "a.yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nreservedSystemCPUs: '8'")
	for _, row := range []struct {
		text string
		more []Source
		want string
	}{
		{"[OSGroup]\ncpuset = '0-1'", nil, `cache:
  besteffort:
    ways: 7
  guaranteed:
    ways: 10
  os:
    ways: 1
  shared:
    members: 10
    ways: 2
kind: NodeConfig
reservedCPUs: 0-1
`},
		{"[OSGroup]\ncpuset = ''\n[InfraGroup]\ncacheways = 3\ncpuset = '4-5'\n[CachePool]\nbesteffort = 0\nshared = 0", kubelet, `cache:
  guaranteed:
    ways: 10
  infra:
    cpus: 4-5
    ways: 3
  os:
    ways: 1
kind: NodeConfig
reservedCPUs: 4-5,8
`},
	} {
		plan := made(t, slices.Concat(sources(t, "rmd.toml", row.text), row.more)...)
		if plan.Files[0].Text != "apiVersion: dra.numa/v1alpha1\n"+row.want {
			t.Errorf("%q: files %v", row.text, plan.Files)
		}
	}
	plan := made(t, slices.Concat(sources(t, "a.toml", "[CachePool]\nshared = 2"), sources(t, "b.toml", "[CachePool]\nshared = 3"))...)
	if plan.Lines[0].Outcome != ByHand || plan.Lines[0].Sources[0] != "b.toml" {
		t.Errorf("lines begin with %v", plan.Lines[0])
	}
	if plan := made(t, sources(t, "policy.toml", "[skylake]\n[skylake.gold.cache]\nmax = 4")...); plan.Lines[0].Outcome != Unknown {
		t.Errorf("lines %v", plan.Lines)
	}
}

// A file that is wrong is an error that names the line, or the field.
func TestRMDFileThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"[a":                     "line 1: toml: ",
		"[OSGroup]\ncpuset":      "line 2: toml: ",
		"[OSGroup]\ncpuset = '0": "line 2: toml: ",
		"[a]\n[a]":               "line 2: toml: ",
	} {
		if _, err := Read("rmd.toml", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "read rmd.toml: "+want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"[OSGroup]\ncpuset = 'x'":     "rmd.toml rmd.toml: OSGroup.cpuset: ",
		"[OSGroup]\ncacheways = 'x'":  "rmd.toml rmd.toml: cannot unmarshal",
		"[OSGroup]\ncacheways = -1":   "what was read makes no NodeConfig: cache.os.ways: -1",
		"[CachePool]\nguarantee = 99": "what was read makes no NodeConfig: cache.",
	} {
		if _, err := Make(sources(t, "rmd.toml", text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}
