package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// mostValue is how many bytes of a value a list shows.
const mostValue = 60

// list adds a line for each field of a source. A field that the table does not have is
// listed as unknown, never left out.
func (p *plan) list(s *Source) {
	if scheduled(s.Kind) || s.Kind == "Node" && s.Group == "" {
		return // only their schedulerName and their labels matter
	}
	if s.Kind == rmdWorkloadKind && s.ofPod() {
		p.add(s.String(), Line{
			Kind: s.Kind, Field: "metadata.ownerReferences", Value: s.Owner, Outcome: Replaced,
			Says: "the RDT operator made the whole object of a pod, and webhook.translate gives the pod a claim with the same ways",
		})
		return
	}
	if p.isMade(s) {
		p.add(s.String(), Line{
			Kind: s.Kind, Field: "metadata.ownerReferences", Value: s.Owner, Outcome: Stays,
			Says: "the Node Tuning Operator made the whole object of the profile, and changes it when the profile changes",
		})
		return
	}
	if _, known := table[field{s.Group, s.Kind, ""}]; !known {
		p.add(s.String(), Line{Kind: s.Kind, Field: "-", Value: cmp.Or(s.Group, "-"), Outcome: Unknown, Says: "migrate does not read objects of this kind"})
		return
	}
	if s.Kind == kubeletKind && s.variant == "" && s.fields["cpuManagerPolicy"] != "static" {
		s.variant = aloneKind
	}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			p.listField(s, name, s.fields[name])
		}
	}
}

// listField adds a line for a field, or for the fields in it. path has [] for elements of a
// list; so has the field of a rule.
func (p *plan) listField(s *Source, path string, value any) {
	if isEmpty(value) {
		return // as if it were not there: configz has every field
	}
	at := field{s.Group, s.Kind, path}
	r, found := ruleFor(field{s.Group, s.variant, path}, value)
	if !found {
		r, found = ruleFor(at, value)
	}
	if found {
		p.add(s.String(), Line{Kind: s.Kind, Field: path, Value: short(value), Outcome: r.outcome, Says: r.says, Unrelated: r.unrelated})
		return
	}
	rules, known := table[at]
	switch children := value.(type) {
	case map[string]any:
		if known && len(rules) == 0 {
			for _, key := range slices.Sorted(maps.Keys(children)) {
				p.listField(s, path+"."+key, children[key])
			}
			return
		}
	case []any:
		if _, has := table[field{s.Group, s.Kind, path + "[]"}]; has {
			for _, child := range children {
				p.listField(s, path+"[]", child)
			}
			return
		}
	}
	says := "migrate does not know this field"
	if known {
		says = "migrate does not know this value"
	}
	p.add(s.String(), Line{Kind: s.Kind, Field: path, Value: short(value), Outcome: Unknown, Says: says})
}

// ruleFor returns the first rule for the field with the value, else that for any key of its
// parent.
func ruleFor(at field, value any) (rule, bool) {
	anyKey := at
	anyKey.path = at.path[:strings.LastIndexByte(at.path, '.')+1] + "*"
	for _, r := range slices.Concat(table[at], table[anyKey]) {
		if r.value == "" || r.value == text(value) {
			return r, true
		}
	}
	return rule{}, false
}

// isEmpty reports whether a value says nothing. The number 0 and false say something.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// text returns a value as a user would write it in one line.
func text(value any) string {
	if s, is := value.(string); is {
		return s
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(b)
}

func short(value any) string { return message.Short(message.OneLine(text(value)), mostValue) }
