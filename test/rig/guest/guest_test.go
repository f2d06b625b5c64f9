package guest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const units = "etc/systemd/system/"

func render(t *testing.T, i Init) map[string]string {
	t.Helper()
	files, err := i.Files()
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for name, content := range files {
		text[name] = string(content)
	}
	return text
}

// values lists what a unit file sets a key to, word by word.
func values(unit, key string) []string {
	var words []string
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(line, key+"="); ok {
			words = append(words, strings.Fields(value)...)
		}
	}
	return words
}

// kubelet takes its cgroup driver from the runtime, and from its own file with a runtime
// that does not tell it.
func TestKubeletAndRuncMakeCgroupsTheSameWay(t *testing.T) {
	for init, want := range map[Init][2]string{
		Busybox: {"cgroupDriver: cgroupfs\n", "SystemdCgroup = false\n"},
		Systemd: {"cgroupDriver: systemd\n", "SystemdCgroup = true\n"},
	} {
		files := render(t, init)
		if got := files["var/lib/kubelet/config.yaml"]; !strings.Contains(got, want[0]) {
			t.Errorf("%s: kubelet's configuration has no %q:\n%s", init, want[0], got)
		}
		if got := files["etc/containerd/config.toml"]; !strings.Contains(got, want[1]) {
			t.Errorf("%s: containerd's configuration has no %q:\n%s", init, want[1], got)
		}
	}
}

// Pods run with the first runtime; a RuntimeClass names the handler of each.
func TestContainerdKnowsEveryRuntime(t *testing.T) {
	for _, init := range Inits() {
		config := render(t, init)["etc/containerd/config.toml"]
		for _, line := range []string{
			`default_runtime_name = "crun"`,
			`containerd.runtimes.crun.options]` + "\n", `BinaryName = "crun"` + "\n",
			`containerd.runtimes.runc.options]` + "\n", `BinaryName = "runc"` + "\n",
		} {
			if !strings.Contains(config, line) {
				t.Errorf("%s: containerd's configuration has no %q:\n%s", init, line, config)
			}
		}
	}
}

func TestInitsHaveOnlyTheirOwnFiles(t *testing.T) {
	for _, init := range Inits() {
		files := render(t, init)
		if _, common := files["etc/rig/service"]; !common {
			t.Errorf("%s: no etc/rig/service, which is for all", init)
		}
		_, inittab := files["etc/inittab"]
		_, unit := files[units+"kubelet.service"]
		if inittab != (init == Busybox) || unit != (init == Systemd) {
			t.Errorf("%s: inittab %t, kubelet.service %t", init, inittab, unit)
		}
		for name, text := range files {
			if strings.Contains(text, "{{") {
				t.Errorf("%s: %s is not rendered:\n%s", init, name, text)
			}
		}
	}
}

func TestDefaultTargetStartsEveryServiceOfOurs(t *testing.T) {
	files := render(t, Systemd)
	wanted := values(files[units+"default.target"], "Wants")
	ordered := values(files[units+"default.target"], "After")
	for name, text := range files {
		if path.Dir(name)+"/" != units || path.Ext(name) != ".service" || text == "" {
			continue
		}
		unit := path.Base(name)
		if !slices.Contains(wanted, unit) || !slices.Contains(ordered, unit) {
			t.Errorf("default.target wants %q and is after %q, not %s", wanted, ordered, unit)
		}
		program := strings.TrimPrefix(values(text, "ExecStart")[0], "-/")
		program = strings.TrimPrefix(program, "/")
		if _, ours := files[program]; !ours && program != "bin/sh" {
			t.Errorf("%s starts %s, which is not on the disk", unit, program)
		}
		for _, needed := range append(values(text, "Requires"), values(text, "Wants")...) {
			if files[units+needed] == "" {
				t.Errorf("%s needs %s, which is no unit of ours", unit, needed)
			}
		}
	}
	for _, unit := range wanted {
		if files[units+unit] == "" {
			t.Errorf("default.target wants %s, which is masked or not there", unit)
		}
	}
}

// in-cgroup and the units hand their name to the service script, which does nothing for a
// name that it does not know.
func TestServiceScriptKnowsEveryService(t *testing.T) {
	for _, init := range Inits() {
		files := render(t, init)
		var services []string
		for _, text := range files {
			for line := range strings.Lines(text) {
				for _, starter := range []string{"::respawn:/etc/rig/in-cgroup ", "ExecStart=/etc/rig/service "} {
					if name, ok := strings.CutPrefix(line, starter); ok {
						services = append(services, strings.TrimSpace(name))
					}
				}
			}
		}
		slices.Sort(services)
		if want := []string{"agent", "containerd", "kubelet"}; !slices.Equal(services, want) {
			t.Errorf("%s starts %q, want %q", init, services, want)
		}
		for _, name := range services {
			if !strings.Contains(files["etc/rig/service"], "\n"+name+")\n") {
				t.Errorf("%s: etc/rig/service knows no %s", init, name)
			}
		}
	}
}

func TestMaskedUnitsAreEmpty(t *testing.T) {
	files := render(t, Systemd)
	for _, unit := range masked {
		if text, there := files[units+unit]; !there || text != "" {
			t.Errorf("%s: there %t, text %q; want an empty file", unit, there, text)
		}
	}
}
