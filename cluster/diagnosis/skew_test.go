package diagnosis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
)

// released is a healthy cluster with the release 0.1.0 of the chart.
func released(t *testing.T) *Facts {
	t.Helper()
	facts := healthy(t)
	label := map[string]string{versionLabel: "v0.1.0"}
	set := facts.Installation.DaemonSets[0]
	set.Labels = map[string]string{versionLabel: "v0.1.0", chartLabel: "dra-driver-numa-0.1.0"}
	set.Spec.Template.Labels = label
	facts.DaemonPods()[0].Labels[versionLabel] = "v0.1.0"
	facts.Installation.Deployments[0].Labels = label
	facts.Installation.Deployments[0].Spec.Template.Spec.Containers = []corev1.Container{{Image: "d:1"}}
	return facts
}

func TestVersionsOfAHealthyCluster(t *testing.T) {
	want := Versions{
		Client: "0.1.0", Kubernetes: "v1.37.1", Chart: "dra-driver-numa-0.1.0", Namespace: "dra-numa",
		Components: []Component{
			{Name: "kubelet", Version: "v1.37.1", Nodes: []string{"n1"}},
			{Name: "containerd", Version: "2.4.2", Nodes: []string{"n1"}},
			{Name: "kernel", Version: "6.12.107", Nodes: []string{"n1"}},
			{Name: DaemonName, Version: "v0.1.0", Image: "d:1", Nodes: []string{"n1"}},
			{Name: WebhookName, Version: "v0.1.0", Image: "d:1", Nodes: []string{}},
		},
		Skew: []Skew{}, Unread: []Unread{},
	}
	if diff := cmp.Diff(want, VersionsOf(released(t), "0.1.0")); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestEachSkewSaysWhatItMeans(t *testing.T) {
	newest, err := simulate.RulesOf("1.999")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what, client string
		do           func(*Facts)
		want         string
	}{
		{"an older client", "v0.0.9", func(*Facts) {}, "kubectl-numa,dra-driver-numa: kubectl-numa is v0.0.9 and the driver is v0.1.0: slices, pick, lint and drift follow the rules of v0.0.9. "},
		{"a client without a version", "dev", func(*Facts) {}, `kubectl-numa,dra-driver-numa: kubectl-numa is "dev" and the driver is "v0.1.0": the versions cannot be compared`},
		{"a rollout", "v0.1.0", func(f *Facts) { f.DaemonPods()[0].Spec.Containers[0].Image = "d:0" }, "dra-driver-numa: the DaemonSet has version \"v0.1.0\" and image d:1, and pods on n1 have version \"v0.1.0\" and image d:0: the rollout has not finished."},
		{"another webhook", "v0.1.0", func(f *Facts) { f.Installation.Deployments[0].Labels = map[string]string{versionLabel: "v0.0.9"} }, `dra-driver-numa-webhook,dra-driver-numa: the webhook is from version "v0.0.9" of the chart and the DaemonSet from "v0.1.0": `},
		{"an old kubelet", "v0.1.0", func(f *Facts) { f.Objects.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.35.4" }, "kubelet: kubelet v1.35.4 on n1 is older than 1.36: "},
		{"a new API server", "v0.1.0", func(f *Facts) { f.Version = "v1.38.0-alpha.1" }, "kube-apiserver: kube-apiserver v1.38.0-alpha.1 is newer than 1.37, with which this version was tested: simulate and explain place pods as the scheduler of " + newest.Release() + " does"},
		{"a patch of the newest version", "v0.1.0", func(f *Facts) { f.Version = "v1.37.99" }, ""},
		{"the oldest version", "v0.1.0", func(f *Facts) { f.Version = "v1.36.0" }, ""},
	} {
		facts := released(t)
		row.do(facts)
		var got string
		for _, skew := range VersionsOf(facts, row.client).Skew {
			got += strings.Join(skew.Between, ",") + ": " + skew.Sentence
		}
		if !strings.HasPrefix(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: skew is\n%s\nwant\n%s", row.what, got, row.want)
		}
	}
}

func TestVersionNamesTheWebhookOnce(t *testing.T) {
	f := released(t)
	renewer := f.Installation.Deployments[0].DeepCopy()
	renewer.Labels = map[string]string{versionLabel: "v1", PartOfLabel: PartOf, ComponentLabel: string(Renewer)}
	templates := renewer.DeepCopy()
	templates.Labels[ComponentLabel] = string(Templates)
	before := VersionsOf(f, "0.1.0")
	f.Installation.Deployments = append(f.Installation.Deployments, renewer, templates)
	if diff := cmp.Diff(before, VersionsOf(f, "0.1.0")); diff != "" {
		t.Errorf("with renewer and templates (-without +with):\n%s", diff)
	}
}
