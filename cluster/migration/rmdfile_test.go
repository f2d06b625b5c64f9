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

// What the reader does not know of TOML is an error that names the line.
func TestTOMLThatIsNotRead(t *testing.T) {
	for text, want := range map[string]string{
		"[a":                "line 1: want [section]",
		"\n[[a]]":           "line 2: want [section]",
		"[a] b":             "line 1: want [section]",
		"word":              "line 1: want [section] or key = value",
		"a.b = 1":           `line 1: "a.b = 1", want key = value`,
		"a = 1 2":           `line 1: "a = 1 2", want key = value`,
		"a = ":              `line 1: "", want a text in quotes`,
		"a = nan":           `line 1: "nan", want a text in quotes`,
		"a = [1, [2]]":      `line 1: "[2]]", want a text in quotes`,
		"a = [1,":           `line 1: "", want a text in quotes`,
		"a = [1 2]":         `line 1: "[1 2]", want a list in one line`,
		"a = '''\nb\n'''":   `line 1: "a = '''", want key = value`,
		"a = {b = 1}":       `line 1: "{b = 1}", want a text in quotes`,
		"a = 2026-11-29":    `line 1: "2026-11-29", want a text in quotes`,
		"[OSGroup]\ncpuset": "line 2: want [section] or key = value",
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
