package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The template, filled in as krew-release-bot does, is a manifest of krew, and names the
// archives that the Makefile writes.
func TestKrewManifest(t *testing.T) {
	var archives []string
	functions := template.FuncMap{"addURIAndSha": func(uri, tag string) string {
		uri = strings.ReplaceAll(uri, "{{ .TagName }}", tag)
		archives = append(archives, filepath.Base(uri))
		return "uri: " + uri + "\n    sha256: " + strings.Repeat("ab", 32)
	}}
	parsed, err := template.New("krew").Funcs(functions).Parse(testfiles.Read(t, "../../.krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := parsed.Execute(&text, map[string]string{"TagName": "v0.1.0"}); err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text.String()), &plugin); err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	if plugin.Metadata.Name != "numa" || plugin.Spec.Version != "v0.1.0" || len(plugin.Spec.ShortDescription) > 60 {
		t.Errorf("plugin is %+v", plugin)
	}
	var platforms []string
	for i, platform := range plugin.Spec.Platforms {
		labels, bin := platform.Selector.MatchLabels, program
		if labels.OS == "windows" {
			bin += ".exe"
		}
		name := labels.OS + "_" + labels.Arch
		if want := "kubectl-numa_v0.1.0_" + name + ".tar.gz"; archives[i] != want || platform.Bin != bin || len(platform.SHA256) != 64 {
			t.Errorf("platform is %+v, want the archive %s with %s", platform, want, bin)
		}
		platforms = append(platforms, name)
	}
	testfiles.Contains(t, testfiles.Read(t, "../../Makefile"),
		"\nPLUGIN_PLATFORMS ?= "+strings.Join(platforms, " ")+"\n", "/kubectl-numa_$(VERSION)_$(3).tar.gz ", "\nplugin = kubectl-numa$(if $(filter windows_%,$(1)),.exe)\n")
}

// kubectl calls the file with the words after "kubectl numa".
func TestCompletionFileCallsThePlugin(t *testing.T) {
	file, err := filepath.Abs("../../deployments/kubectl/kubectl_complete-numa")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "kubectl-numa"), "#!/bin/sh\necho \"$@\"\n")
	if err := os.Chmod(filepath.Join(dir, "kubectl-numa"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(file, "explain", "pod/")
	command.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	if out, err := command.CombinedOutput(); err != nil || string(out) != "__complete explain pod/\n" {
		t.Errorf("the file says %q, %v", out, err)
	}
}
