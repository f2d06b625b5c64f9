package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// row is one object, and what lint finds in it.
type row struct {
	Claim    *resourceapi.DeviceClaim     `json:"claim,omitempty"`
	Template *resourceapi.DeviceClaim     `json:"template,omitempty"`
	Class    *resourceapi.DeviceClassSpec `json:"class,omitempty"`
	Pod      *corev1.PodSpec              `json:"pod,omitempty"`
	// Finds is nil if lint finds nothing.
	Finds *struct {
		Rule    string `json:"rule"`
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"finds,omitempty"`
}

// findings are those in the object of the row.
func (r row) findings(l *Linter) []Finding {
	switch {
	case r.Claim != nil:
		claim := &resourceapi.ResourceClaim{}
		claim.Spec.Devices = *r.Claim
		return l.Claim(claim)
	case r.Template != nil:
		template := &resourceapi.ResourceClaimTemplate{}
		template.Spec.Spec.Devices = *r.Template
		return l.Template(template)
	case r.Class != nil:
		return l.Class(&resourceapi.DeviceClass{Spec: *r.Class})
	}
	return l.Pod(&corev1.Pod{Spec: *r.Pod})
}

// String is the row as the file has it, but for the style of the YAML.
func (r row) String() string {
	text, _ := yaml.Marshal(r)
	return string(text)
}

func TestRules(t *testing.T) {
	linter := New(known(t))
	severities := map[string]Severity{}
	for _, rule := range Rules() {
		severities[rule.Name] = rule.Severity
	}
	found := map[string]bool{}
	for _, row := range *object.Parse[[]row](t, files.Read(t, "testdata/rules.yaml")) {
		var want []Finding
		if w := row.Finds; w != nil {
			want = append(want, Finding{w.Rule, severities[w.Rule], w.Field, w.Message})
		}
		got := row.findings(linter)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s(-want +got):\n%s", row, diff)
		}
		for _, finding := range got {
			found[finding.Rule] = true
			if len(finding.String()) > 250 { // the API server cuts warnings at 256 bytes
				t.Errorf("%d bytes: %s", len(finding.String()), finding)
			}
		}
	}
	for name := range severities {
		if !found[name] {
			t.Errorf("rule %s found nothing", name)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("rule %s is not listed", name)
	}
}

func TestFindingsReadAsAdmissionSaysThem(t *testing.T) {
	for want, finding := range map[string]Finding{
		`spec.x: "a", allowed is b`:        {InvalidParameters, Error, "spec.x", `"a", allowed is b`},
		"spec.y: is slow (too-many-texts)": {TooManyTexts, Warning, "spec.y", "is slow"},
	} {
		if finding.String() != want {
			t.Errorf("%q, want %q", finding.String(), want)
		}
	}
}

// docs/rules.md has a row for each rule.
func TestRulesAreDocumented(t *testing.T) {
	page := files.Read(t, "../../docs/rules.md")
	for _, rule := range Rules() {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", rule.Name, rule.Severity, rule.Doc); !strings.Contains(page, row) {
			t.Errorf("docs/rules.md lacks the row\n%s", row)
		}
	}
}
