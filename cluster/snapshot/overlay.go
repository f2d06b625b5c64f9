package snapshot

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Overlay adds the objects of another snapshot, which must not be used afterwards. An
// object with the same kind, namespace and name replaces the object of s. If it has no
// UID of its own, it keeps the UID of the replaced object, so that references to it
// stay valid.
func (s *Snapshot) Overlay(other *Snapshot) {
	s.Nodes = overlay(s.Nodes, other.Nodes)
	s.Classes = overlay(s.Classes, other.Classes)
	s.Slices = overlay(s.Slices, other.Slices)
	s.Claims = overlay(s.Claims, other.Claims)
	s.Templates = overlay(s.Templates, other.Templates)
	s.TaintRules = overlay(s.TaintRules, other.TaintRules)
	s.Pods = overlay(s.Pods, other.Pods)
	s.Budgets = overlay(s.Budgets, other.Budgets)
	s.Events = overlay(s.Events, other.Events)
	s.Workloads = overlay(s.Workloads, other.Workloads)
	for kind, count := range other.Ignored {
		for range count {
			s.ignore(kind)
		}
	}
	for id, where := range other.seen {
		s.see(id, where)
	}
	for id, text := range other.texts {
		s.keepText(id, text)
	}
}

func overlay[T metav1.Object](under, over []T) []T {
	places := make(map[identity]int, len(under))
	for i, object := range under {
		places[identityOf(object)] = i
	}
	for _, object := range over {
		id := identityOf(object)
		i, there := places[id]
		if !there {
			under = append(under, object)
			continue
		}
		if object.GetUID() == madeUpUID(id) {
			object.SetUID(under[i].GetUID())
		}
		under[i] = object
	}
	return under
}

// Underlay adds the events, workloads and budgets of another snapshot that s does not
// have. The other snapshot must not be used afterwards.
func (s *Snapshot) Underlay(other *Snapshot) {
	s.Events = overlay(other.Events, s.Events)
	s.Workloads = overlay(other.Workloads, s.Workloads)
	s.Budgets = overlay(other.Budgets, s.Budgets)
}
