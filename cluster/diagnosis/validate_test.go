package diagnosis

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

func line(f Finding) string {
	return strings.Join([]string{f.Node, f.Check, f.Component, f.Setting, f.Expected, f.Detected}, " | ")
}

func TestHealthyClusterHasNoFinding(t *testing.T) {
	if findings := Validate(healthy(t)); len(findings) != 0 || findings == nil {
		t.Errorf("findings are %+v", findings)
	}
}

// Each broken thing gives exactly its finding, and every check finds some broken thing.
func TestEveryBrokenThingIsItsFinding(t *testing.T) {
	found := make(map[string]bool)
	for _, b := range breakages() {
		facts := healthy(t)
		b.do(facts)
		var got []string
		for _, finding := range Validate(facts) {
			got = append(got, line(finding))
			found[finding.Check] = true
		}
		if diff := cmp.Diff([]string{b.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", b.what, diff)
		}
	}
	for _, check := range Checks() {
		if !found[check.Name] {
			t.Errorf("nothing is broken that %s finds", check.Name)
		}
	}
}

// What could not be read is not reported as missing.
func TestUnreadIsNoSecondFinding(t *testing.T) {
	facts := healthy(t)
	facts.Installation, facts.Gates, facts.Kubelets = Installation{}, nil, nil
	for _, what := range []string{"DaemonSets", "Deployments", "ClusterRoles", "ClusterRoleBindings", "feature gates", "configz"} {
		facts.Unread = append(facts.Unread, Unread{Setting: what, Why: "forbidden"})
	}
	for _, finding := range Validate(facts) {
		if finding.Check != "not-checked" {
			t.Errorf("found %+v", finding)
		}
	}
}

// What the user may not read is no problem; a component that does not answer is one.
func TestWhatMayNotBeReadIsNothingWrong(t *testing.T) {
	facts := healthy(t)
	facts.Unread = []Unread{{Setting: "configz", Denied: true}, {Setting: "ClusterRoles", Denied: true}}
	if findings := Validate(facts); len(findings) != 2 || CountProblems(findings) != 0 {
		t.Errorf("%d of findings %+v are wrong, want none of two", CountProblems(findings), findings)
	}
	facts.Unread[0].Denied = false
	facts.Gates["DRAConsumableCapacity"] = false
	if findings := Validate(facts); len(findings) != 3 || CountProblems(findings) != 2 {
		t.Errorf("%d of findings %+v are wrong, want two of three", CountProblems(findings), findings)
	}
}

// Services and annotations that change CPUs matter only to claims that set the same.
func TestServicesMatterToClaimsThatSetTheSame(t *testing.T) {
	facts := healthy(t)
	facts.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{Services: []string{"tuned", "thermald"}}}}
	facts.Objects.Pod("default", "p").Annotations = map[string]string{"cpu-freq-governor.crio.io": "schedutil", "irq-load-balancing.crio.io": "disable"}
	if findings := Validate(facts); len(findings) != 0 {
		t.Errorf("without such claims, findings are %+v", findings)
	}
	facts.tune(`{"idleLatency": 20}`)
	if findings := Validate(facts); len(findings) != 2 || CountProblems(findings) != 0 {
		t.Errorf("%d of findings %+v are wrong, want none of two", CountProblems(findings), findings)
	}
	facts.Objects.Claims[0].Status.Devices[0].Pool = "n2"
	if findings := Validate(facts); len(findings) != 0 {
		t.Errorf("with a claim of another node, findings are %+v", findings)
	}
}

// Findings are sorted by node, after those of the cluster.
func TestFindingsAreByNode(t *testing.T) {
	facts := healthy(t)
	facts.Unread = []Unread{{Node: "n2"}, {Node: "n1"}, {}}
	facts.Kubelets["n1"] = Kubelet{CPUManagerPolicy: "static"}
	var got []string
	for _, finding := range Validate(facts) {
		got = append(got, finding.Node+" "+finding.Check)
	}
	if want := []string{" not-checked", "n1 not-checked", "n1 kubelet-manager", "n2 not-checked"}; !slices.Equal(got, want) {
		t.Errorf("findings are %q, want %q", got, want)
	}
}

// Rights are the rules of the chart's ClusterRole.
func TestRightsAreTheCharts(t *testing.T) {
	text := files.Read(t, "../../deployments/helm/dra-driver-numa/templates/rbac.yaml")
	document := strings.Split(text, "---")[1]
	_, rules, _ := strings.Cut(document, "\nrules:\n")
	role := object.Parse[rbacv1.ClusterRole](t, "rules:\n"+rules)
	if diff := cmp.Diff(role.Rules, Rights()); diff != "" {
		t.Errorf("rules (-chart +Rights):\n%s", diff)
	}
}

// docs/validate.md has a row for every check, and no other rows.
func TestEveryCheckIsDocumented(t *testing.T) {
	text := files.Read(t, "../../docs/validate.md")
	var documented, checks []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(text, -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	for _, check := range Checks() {
		checks = append(checks, check.Name+" "+check.Area)
	}
	if diff := cmp.Diff(checks, documented); diff != "" {
		t.Errorf("rows of docs/validate.md (-checks +rows):\n%s", diff)
	}
}

// Without rbac.create, an administrator has made the roles, with labels that the chart does
// not know.
func TestRightsWithoutTheChartsRolesAreNotKnown(t *testing.T) {
	facts := healthy(t)
	facts.Installation.Bindings, facts.Installation.ClusterRoles = nil, nil
	if err := facts.Installation.Locate("dra-numa"); err != nil {
		t.Fatal(err)
	}
	if findings := Validate(facts); CountProblems(findings) > 0 {
		t.Errorf("findings %v", findings)
	}
}

// Of a flag that is there twice, the daemon takes the last one.
func TestLastArgumentCounts(t *testing.T) {
	container := corev1.Container{Args: []string{"--cdi-dir=/a", "--cdi-directory=/x", "--cdi-dir=/b"}}
	if value, given := Argument(container, "cdi-dir"); value != "/b" || !given {
		t.Errorf("%q, %t", value, given)
	}
}
