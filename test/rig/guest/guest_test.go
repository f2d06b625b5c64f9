package guest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const units = "etc/systemd/system/"

// guests lists every Guest.
func guests() (all []Guest) {
	for _, init := range Inits() {
		for _, cri := range CRIs() {
			all = append(all, Guest{Init: init, CRI: cri})
		}
	}
	return all
}

func render(t *testing.T, g Guest) map[string]string {
	t.Helper()
	files, err := g.Files()
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
func TestKubeletAndItsRuntimeMakeCgroupsTheSameWay(t *testing.T) {
	for g, want := range map[Guest][3]string{
		{Busybox, Containerd, "", Common}: {"cgroupDriver: cgroupfs\n", "etc/containerd/config.toml", "SystemdCgroup = false\n"},
		{Systemd, Containerd, "", Common}: {"cgroupDriver: systemd\n", "etc/containerd/config.toml", "SystemdCgroup = true\n"},
		{Busybox, CRIO, "", Common}:       {"cgroupDriver: cgroupfs\n", "etc/crio/crio.conf", `cgroup_manager = "cgroupfs"` + "\n"},
		{Systemd, CRIO, "", Common}:       {"cgroupDriver: systemd\n", "etc/crio/crio.conf", `cgroup_manager = "systemd"` + "\n"},
	} {
		files := render(t, g)
		for file, line := range map[string]string{"var/lib/kubelet/config.yaml": want[0], want[1]: want[2]} {
			if !strings.Contains(files[file], line) {
				t.Errorf("%s: %s has no %q:\n%s", g, file, line, files[file])
			}
		}
	}
}

func TestKubeletHasTheFeatureGatesOfTheCluster(t *testing.T) {
	for gates, want := range map[string]string{
		"":               "featureGates: {KubeletCrashLoopBackOffMax: true}\n",
		"A=true,B=false": "featureGates: {KubeletCrashLoopBackOffMax: true, A: true, B: false}\n",
	} {
		if config := render(t, Guest{Busybox, Containerd, gates, Common})["var/lib/kubelet/config.yaml"]; !strings.Contains(config, want) {
			t.Errorf("with the gates %q, kubelet's configuration has no %q:\n%s", gates, want, config)
		}
	}
}

func TestKubeletTalksToTheRuntimeOfTheNode(t *testing.T) {
	for _, g := range guests() {
		config := render(t, g)["var/lib/kubelet/config.yaml"]
		if want := "containerRuntimeEndpoint: unix:///run/" + string(g.CRI) + "/" + string(g.CRI) + ".sock\n"; !strings.Contains(config, want) {
			t.Errorf("%s: kubelet's configuration has no %q:\n%s", g, want, config)
		}
	}
}

// Pods run with the first runtime; a RuntimeClass names the handler of each.
func TestRuntimesKnowEveryOCIRuntime(t *testing.T) {
	files := map[CRI]string{Containerd: "etc/containerd/config.toml", CRIO: "etc/crio/crio.conf"}
	lines := map[CRI][]string{
		Containerd: {
			`default_runtime_name = "crun"`,
			`containerd.runtimes.crun.options]` + "\n", `BinaryName = "crun"` + "\n",
			`containerd.runtimes.runc.options]` + "\n", `BinaryName = "runc"` + "\n",
			`containerd.runtimes.crun-old.options]` + "\n", `BinaryName = "crun-old"` + "\n",
		},
		CRIO: {`default_runtime = "crun"`, "disable_hostport_mapping = true ", "[crio.runtime.runtimes.crun]\n", "[crio.runtime.runtimes.runc]\n", "[crio.runtime.runtimes.crun-old]\n"},
	}
	for _, g := range guests() {
		config := render(t, g)[files[g.CRI]]
		for _, line := range lines[g.CRI] {
			if !strings.Contains(config, line) {
				t.Errorf("%s: %s has no %q:\n%s", g, files[g.CRI], line, config)
			}
		}
	}
}

// The kernel, PID 1 and containerd each have to be told.
func TestSELinuxNodesEnforceAPolicy(t *testing.T) {
	enforcing := Guest{Init: Systemd, CRI: Containerd, Layout: SELinux}
	files := render(t, enforcing)
	for name, want := range map[string]string{
		"etc/selinux/config":         "SELINUX=enforcing\n",
		"usr/sbin/init":              "setfiles ",
		"etc/containerd/config.toml": "enable_selinux = true\n",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	if got := enforcing.Parameters(); !strings.Contains(got, "security=selinux") {
		t.Errorf("parameters of the kernel: %q, want security=selinux", got)
	}
	for _, layout := range []Layout{Common, Sealed} {
		other := Guest{Init: Systemd, CRI: Containerd, Layout: layout}
		for name, text := range render(t, other) {
			if strings.Contains(name, "selinux") || strings.Contains(text, "selinux") {
				t.Errorf("layout %s: %s knows SELinux:\n%s", layout, name, text)
			}
		}
		if got := other.Parameters(); got != "" {
			t.Errorf("layout %s: parameters of the kernel: %q, want none", layout, got)
		}
	}
}

// Where a sealed node has something, all of its files say so.
func TestSealedNodesHaveOtherPaths(t *testing.T) {
	for _, init := range Inits() {
		files := render(t, Guest{Init: init, CRI: Containerd, Layout: Sealed})
		for name, text := range files {
			for _, common := range []string{"/run/containerd/containerd.sock", "/var/lib/kubelet", "/var/lib/containerd"} {
				if strings.Contains(text, common) || strings.HasPrefix("/"+name, common) {
					t.Errorf("%s: %s has %s:\n%s", init, name, common, text)
				}
			}
		}
		for name, want := range map[string]string{
			"etc/kubernetes/kubelet.conf.d/10-node.conf": "containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock\n",
			"etc/containerd/config.toml":                 `address = "/run/k3s/containerd/containerd.sock"` + "\n",
			"etc/rig/load":                               "ctr -a /run/k3s/containerd/containerd.sock ",
			"etc/rig/service":                            "kubelet --config-dir=/etc/kubernetes/kubelet.conf.d --root-dir=/var/lib/k0s/kubelet ",
			"etc/rig/setup":                              "mount -o remount,bind,ro /etc\n",
		} {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s: %s has no %q:\n%s", init, name, want, files[name])
			}
		}
	}
}

func TestGuestsHaveOnlyTheirOwnFiles(t *testing.T) {
	for _, g := range guests() {
		files := render(t, g)
		if _, common := files["etc/rig/service"]; !common {
			t.Errorf("%s: no etc/rig/service, which is for all", g)
		}
		for name, want := range map[string]bool{
			"etc/inittab":                g.Init == Busybox,
			units + "kubelet.service":    g.Init == Systemd,
			units + "containerd.service": g == Guest{Init: Systemd, CRI: Containerd},
			units + "crio.service":       g == Guest{Init: Systemd, CRI: CRIO},
			"etc/containerd/config.toml": g.CRI == Containerd,
			"etc/crio/crio.conf":         g.CRI == CRIO,
			"etc/rig/load":               true,
		} {
			if _, there := files[name]; there != want {
				t.Errorf("%s: %s is there: %t, want %t", g, name, there, want)
			}
		}
		for name, text := range files {
			if strings.Contains(text, "{{") {
				t.Errorf("%s: %s is not rendered:\n%s", g, name, text)
			}
		}
	}
}

func TestDefaultTargetStartsEveryServiceOfOurs(t *testing.T) {
	for _, cri := range CRIs() {
		checkDefaultTarget(t, render(t, Guest{Init: Systemd, CRI: cri}))
	}
}

func checkDefaultTarget(t *testing.T, files map[string]string) {
	t.Helper()
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
	for _, g := range guests() {
		files := render(t, g)
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
		if want := []string{"agent", string(g.CRI), "kubelet"}; !slices.Equal(services, want) {
			t.Errorf("%s starts %q, want %q", g, services, want)
		}
		for _, name := range services {
			if !strings.Contains(files["etc/rig/service"], "\n"+name+")\n") {
				t.Errorf("%s: etc/rig/service knows no %s", g, name)
			}
		}
	}
}

func TestMaskedUnitsAreEmpty(t *testing.T) {
	files := render(t, Guest{Init: Systemd, CRI: Containerd})
	for _, unit := range masked {
		if text, there := files[units+unit]; !there || text != "" {
			t.Errorf("%s: there %t, text %q; want an empty file", unit, there, text)
		}
	}
}
