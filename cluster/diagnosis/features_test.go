package diagnosis

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// allGates are those of Kubernetes 1.37 that features need, with their defaults.
func allGates() map[string]bool {
	gates := map[string]bool{}
	for _, g := range gatedFeatures() {
		gates[g.gate] = g.gate != countingGate && g.gate != listsGate
	}
	return gates
}

func TestFeatures(t *testing.T) {
	on := func(name string) string { return name + " on" }
	defaults := []string{
		on("shared-zones"), on("claim-status"), on("alternatives"), on("device-taints"), on("taint-rules"), on("admin-access"), on("extended-resources"),
		"counted-claims off: DRANodeAllocatableResources is off in kube-apiserver",
		"numa-node-lists off: DRAListTypeAttributes is off in kube-apiserver", on("health"), "exclusive-cpus on: kernel on n1",
	}
	with := func(i int, text string) []string {
		list := append([]string{}, defaults...)
		list[i] = text
		return list
	}
	for what, row := range map[string]struct {
		do   func(*Facts)
		want []string
	}{
		"defaults of 1.37":         {func(*Facts) {}, defaults},
		"a gate is off":            {func(f *Facts) { f.Gates["DRADeviceTaintRules"] = false }, with(4, "taint-rules off: DRADeviceTaintRules is off in kube-apiserver")},
		"a gate does not exist":    {func(f *Facts) { delete(f.Gates, "DRADeviceTaintRules") }, with(4, "taint-rules off: kube-apiserver v1.37.1 does not have DRADeviceTaintRules")},
		"rules are not served":     {func(f *Facts) { f.Objects.RuleVersion = snapshot.NotServed }, with(4, "taint-rules off: kube-apiserver serves no version of DeviceTaintRules")},
		"rules of an old version":  {func(f *Facts) { f.Objects.RuleVersion = "v1beta2" }, defaults},
		"counted, not by kubelets": {func(f *Facts) { f.Gates[countingGate] = true }, with(7, "counted-claims off: DRANodeAllocatableResources is off in the kubelets")},
		"counted by all": {func(f *Facts) {
			f.Gates[countingGate] = true
			f.Kubelets["n1"] = Kubelet{FeatureGates: map[string]bool{"AllAlpha": true}}
		}, with(7, on("counted-claims"))},
		"1.36 counts in another way": {func(f *Facts) { f.Gates[countingGate], f.Version = true, "v1.36.3" }, with(7, "counted-claims off: kube-apiserver v1.36.3 is older than 1.37")},
		"lists":                      {func(f *Facts) { f.Gates[listsGate] = true }, with(8, on("numa-node-lists"))},
		"lists, and the scheduler does not compare them": {func(f *Facts) {
			f.Gates[listsGate] = true
			f.Objects.Pods = append(f.Objects.Pods, schedulerPod("kube-system"))
		}, with(8, "numa-node-lists off: DRAListTypeAttributes is off in kube-scheduler")},
		"lists, and the scheduler compares them": {func(f *Facts) {
			f.Gates[listsGate] = true
			f.Objects.Pods = append(f.Objects.Pods, schedulerPod("kube-system", "--feature-gates=DRAListTypeAttributes=true"))
		}, with(8, on("numa-node-lists"))},
		"kubelets without beta features": {
			func(f *Facts) { f.Kubelets["n1"] = Kubelet{FeatureGates: map[string]bool{"AllBeta": false}} },
			with(9, "health off: ResourceHealthStatus is off in the kubelets"),
		},
		"kubelets that cannot be read": {func(f *Facts) { f.Kubelets = nil }, with(9, "health unknown: the settings of the kubelets cannot be read: n1")},
		"no partitions": {func(f *Facts) {
			none := "none"
			f.zones()[0].Spec.Devices[0].Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: &none}
			f.zones()[0].Spec.Devices = f.zones()[0].Spec.Devices[:1]
		}, with(10, "exclusive-cpus off: none on n1")},
		"no zones": {func(f *Facts) { f.Objects.Slices = nil }, with(10, "exclusive-cpus unknown: no zones are published")},
	} {
		facts := healthy(t)
		facts.Gates = allGates()
		row.do(facts)
		var got []string
		for _, feature := range Features(facts) {
			text := feature.Name + " " + string(feature.State)
			if feature.Why != "" {
				text += ": " + feature.Why
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestFeaturesWithoutGates(t *testing.T) {
	facts := healthy(t)
	facts.Gates = nil
	if got := Features(facts)[0]; got.State != FeatureUnknown || got.Why != "the feature gates of the API server cannot be read" {
		t.Errorf("feature is %+v", got)
	}
	facts.Gates, facts.Version = map[string]bool{"Other": true}, "v1.40.0"
	if got := Features(facts)[0]; got.State != FeatureUnknown {
		t.Errorf("feature is %+v", got)
	}
}

// docs/kubectl-numa.md has a row for every feature.
func TestEveryFeatureIsDocumented(t *testing.T) {
	_, page, found := strings.Cut(files.Read(t, "../../docs/kubectl-numa.md"), "\n## features\n")
	if !found {
		t.Fatal("the page has no section features")
	}
	var documented, features [][]string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([^|]+) \\| (?:`(\\w+)`)?[^|]* \\|$").FindAllStringSubmatch(page, -1) {
		documented = append(documented, row[1:3])
	}
	for _, feature := range Features(healthy(t)) {
		features = append(features, []string{feature.Name, feature.What})
	}
	if diff := cmp.Diff(features, documented); diff != "" {
		t.Errorf("rows of docs/kubectl-numa.md (-features +rows):\n%s", diff)
	}
}

// Older builds published attributes with the driver's domain in their names.
func TestDiagnosisIsAlikeInBothSpellings(t *testing.T) {
	cooperative := "cooperative"
	f := healthy(t)
	f.zone().Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: &cooperative}
	features, findings := Features(f), Validate(f)
	f.Objects.Slices = object.WithDomain(f.Objects.Slices)
	if diff := cmp.Diff(features, Features(f)); diff != "" {
		t.Errorf("features (-without the domain +with it):\n%s", diff)
	}
	if diff := cmp.Diff(findings, Validate(f)); diff != "" || len(findings) == 0 {
		t.Errorf("%d findings (-without the domain +with it):\n%s", len(findings), diff)
	}
}
