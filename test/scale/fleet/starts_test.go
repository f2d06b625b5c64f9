package fleet

import (
	"strings"
	"testing"
)

const (
	level  = "# a comment\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: numa}\nspec: {type: Limited, limited: {nominalConcurrencyShares: 20}}\n"
	schema = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: numa}\nspec: {priorityLevelConfiguration: {name: numa}, matchingPrecedence: 1000}\n"
)

func TestFlowControlIsReadInAnyOrder(t *testing.T) {
	for _, text := range []string{"---\n" + level + "---\n" + schema, schema + "---\n" + level} {
		c, err := ReadFlowControl(text)
		if err != nil || *c.Level.Spec.Limited.NominalConcurrencyShares != 20 || c.Schema.Spec.MatchingPrecedence != 1000 {
			t.Errorf("%+v, %v of\n%s", c, err, text)
		}
	}
	for text, want := range map[string]string{
		"":     `"" is none of the two objects`,
		schema: `flow schema "numa" is not of priority level ""`,
		level:  `flow schema "" is not of priority level "numa"`,
		strings.Replace(schema, "name: numa}, m", "name: other}, m", 1) + "---\n" + level: `not of priority level "numa"`,
		schema + "extra: 1\n---\n" + level:                                                "extra",
		schema + "---\n" + level + "---\nkind: Namespace":                                 `"Namespace" is none of the two objects`,
	} {
		if _, err := ReadFlowControl(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q, of\n%s", err, want, text)
		}
	}
}
