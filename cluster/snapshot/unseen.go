package snapshot

import (
	"slices"
	"strings"
)

// Unseen is a kind whose objects the reader of a cluster may not all list.
type Unseen struct {
	Kind string // plural, such as Nodes
	// Except is the only namespace whose objects are in the snapshot. It is "" if no
	// object of the kind is.
	Except string
}

// Hides returns those of the kinds that are missing from the snapshot because its reader
// may not list them.
func (s *Snapshot) Hides(kinds ...string) (hidden []string) {
	for _, unseen := range s.Unseen {
		if unseen.Except == "" && slices.Contains(kinds, unseen.Kind) {
			hidden = append(hidden, unseen.Kind)
		}
	}
	return hidden
}

// UnseenKinds returns what the reader may not list, as a list for people.
func (s *Snapshot) UnseenKinds() (texts []string) {
	elsewhere := make(map[string][]string)
	var namespaces []string
	for _, unseen := range s.Unseen {
		if unseen.Except == "" {
			texts = append(texts, unseen.Kind)
			continue
		}
		if elsewhere[unseen.Except] == nil {
			namespaces = append(namespaces, unseen.Except)
		}
		elsewhere[unseen.Except] = append(elsewhere[unseen.Except], unseen.Kind)
	}
	for _, namespace := range namespaces {
		kinds := elsewhere[namespace]
		text := kinds[len(kinds)-1]
		if before := kinds[:len(kinds)-1]; len(before) > 0 {
			text = strings.Join(before, ", ") + " and " + text
		}
		texts = append(texts, text+" of other namespaces than "+namespace)
	}
	return texts
}
