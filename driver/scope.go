package driver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// user is what decideScopes needs to know about one container of a pod.
type user struct {
	uses []corev1.ResourceClaim // by name of the ResourceClaim, not of the pod's entry; no Request means all requests
	ends bool                   // ends before the next container starts
}

// podUsers lists the containers of a pod in the order in which they start. An init
// container that is not a sidecar ends before the next one starts. All other containers
// run at the same time. Ephemeral containers use no claims.
func podUsers(pod *corev1.Pod) []user {
	names := ledger.ClaimNames(pod)
	var users []user
	add := func(container corev1.Container, ends bool) {
		next := user{ends: ends}
		for _, ref := range container.Resources.Claims {
			if name := names[ref.Name]; name != "" {
				next.uses = append(next.uses, corev1.ResourceClaim{Name: name, Request: ref.Request})
			}
		}
		users = append(users, next)
	}
	for _, container := range pod.Spec.InitContainers {
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		add(container, !sidecar)
	}
	for _, container := range pod.Spec.Containers {
		add(container, false)
	}
	return users
}

// scoped is what decideScopes needs to know about one share. The scopes of several
// shares depend on each other.
type scoped struct {
	claim, request string // request is the main one if the share is of a subrequest
	cpus           bool   // the share has CPUs
	mixed          bool
	recorded       bool // scope is the recorded one; it can only become ScopeShared
	scope          string
}

// in says for each container of a pod whether it uses the share.
func (s scoped) in(users []user) []bool {
	in := make([]bool, len(users))
	for i := range users {
		in[i] = slices.ContainsFunc(users[i].uses, func(ref corev1.ResourceClaim) bool {
			return ref.Name == s.claim && (ref.Request == "" || ref.Request == s.request)
		})
	}
	return in
}

// partitioned reports whether the share would be in a partition.
func (s scoped) partitioned() bool { return s.cpus && !s.mixed && s.scope != ledger.ScopeShared }

// decideScopes decides the scope of each share from the pods that use it. A container
// is in at most one partition, with all of its CPUs. That is its own partition, or its
// pod's if every container that can run at the same time has CPUs in it. Where that is
// not possible, no partition is made. If several pods use a share, each of them must
// allow its scope: the hook and the keeper dissolve the partition while there are
// several, and make it again when one is left.
func decideScopes(pods []*corev1.Pod, shares []scoped) {
	var running [][]user
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			running = append(running, podUsers(pod))
		}
	}
	for i := range shares {
		if !shares[i].recorded {
			shares[i].scope = shares[i].alone(running)
		}
	}
	first, met := slices.Clone(shares), make([]bool, len(shares))
	for _, users := range running {
		inPod := slices.Clone(first)
		joinPod(users, inPod)
		for i := range shares {
			if !slices.Contains(shares[i].in(users), true) {
				continue
			}
			if met[i] && shares[i].scope != inPod[i].scope {
				inPod[i].scope = ledger.ScopeShared
			}
			shares[i].scope, met[i] = inPod[i].scope, true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, users := range running {
			changed = spreadShared(users, shares) || changed
			changed = agree(users, shares) || changed
		}
	}
}

// alone returns the scope that the share has if there are no other shares, and if no two
// containers of a pod use it at the same time.
func (s scoped) alone(pods [][]user) string {
	usedIn, atOnce := 0, false
	for _, users := range pods {
		if in := s.in(users); slices.Contains(in, true) {
			usedIn++
			atOnce = atOnce || runAtOnce(users, in)
		}
	}
	if (usedIn > 1 || atOnce) && (s.mixed || !s.cpus) {
		return ledger.ScopeShared
	}
	return ledger.ScopeContainer
}

// joinPod decides the scope of shares that several containers of the pod use at the same
// time. If every container uses a share of the same claim, the pod becomes the partition
// of all shares of that claim, and each container has its own CPUs inside it. Each claim
// is decided on its own, because other claims of the pod may not be prepared yet. A
// recorded scope that the pod does not allow becomes ScopeShared.
func joinPod(users []user, shares []scoped) {
	claims := make(map[string][]int)
	for i, share := range shares {
		if share.partitioned() && slices.Contains(share.in(users), true) {
			claims[share.claim] = append(claims[share.claim], i)
		}
	}
	for _, members := range claims {
		inAny := make([]bool, len(users))
		var atOnce []int
		for _, i := range members {
			in := shares[i].in(users)
			for user := range in {
				inAny[user] = inAny[user] || in[user]
			}
			if runAtOnce(users, in) {
				atOnce = append(atOnce, i)
			}
		}
		covers := coverPod(users, inAny)
		switch {
		case shares[members[0]].recorded:
			for _, i := range members {
				if shares[i].scope == ledger.ScopePod && !covers || shares[i].scope == ledger.ScopeContainer && slices.Contains(atOnce, i) {
					shares[i].scope = ledger.ScopeShared
				}
			}
		case len(atOnce) > 0 && covers:
			for _, i := range members {
				shares[i].scope = ledger.ScopePod
			}
		default:
			for _, i := range atOnce {
				shares[i].scope = ledger.ScopeShared
			}
		}
	}
}

// runAtOnce reports whether two of these containers of a pod can run at the same time.
func runAtOnce(users []user, in []bool) bool {
	for later := range users {
		for earlier := range later {
			if in[earlier] && in[later] && !users[earlier].ends {
				return true
			}
		}
	}
	return false
}

// coverPod reports whether no other container can run while the pod is the partition of
// these containers: from the start of the first of them to the end of the pod.
func coverPod(users []user, in []bool) bool {
	for later := range users {
		for earlier := range later {
			if in[earlier] && !in[later] || !users[earlier].ends && !in[earlier] && in[later] {
				return false
			}
		}
	}
	return true
}

// spreadShared takes the partition from containers that have some CPUs outside of it.
func spreadShared(users []user, shares []scoped) (changed bool) {
	for i := range users {
		used := func(s scoped) bool { return s.cpus && s.in(users)[i] }
		if !slices.ContainsFunc(shares, func(s scoped) bool { return used(s) && !s.partitioned() }) {
			continue
		}
		for j := range shares {
			if used(shares[j]) && shares[j].partitioned() {
				shares[j].scope, changed = ledger.ScopeShared, true
			}
		}
	}
	return changed
}

// agree allows a partition of the whole pod only if every claim in the pod has it.
func agree(users []user, shares []scoped) (changed bool) {
	var members []int
	var ofPod, ofContainer bool
	for i, share := range shares {
		if !share.partitioned() || !slices.Contains(share.in(users), true) {
			continue
		}
		members = append(members, i)
		ofPod = ofPod || share.scope == ledger.ScopePod
		ofContainer = ofContainer || share.scope == ledger.ScopeContainer
	}
	if !ofPod || !ofContainer {
		return false
	}
	for _, i := range members {
		shares[i].scope = ledger.ScopeShared
	}
	return true
}

// scope decides the scopes of a claim's shares. It decides again on the recorded shares
// of other claims in the same pods, because one of them may have to give up its
// partition.
func (p *planner) scope(grant ledger.Grant, recorded bool, pods []*corev1.Pod) change {
	grants := append(p.neighbours(grant, pods), grant)
	var shares []scoped
	for i, neighbour := range grants {
		for _, share := range neighbour.Shares {
			main, _, _ := strings.Cut(share.Request, "/")
			next := scoped{claim: neighbour.Name, request: main, recorded: true} // without CPUs, it changes the scope of no other share
			if zone := share.Zone(); zone != nil {
				next.cpus, next.mixed, next.scope = !zone.CPUs.IsEmpty(), zone.Mixed, zone.Scope
				next.recorded = recorded || i < len(grants)-1
			}
			shares = append(shares, next)
		}
	}
	decideScopes(pods, shares)
	for i := range grants {
		grants[i] = withScopes(grants[i], shares[:len(grants[i].Shares)])
		shares = shares[len(grants[i].Shares):]
	}
	next := change{Grant: grants[len(grants)-1]}
	for _, decided := range grants {
		next.grants = append(next.grants, ledger.NewListed(decided))
	}
	return next
}

// withScopes returns the grant with the scopes that were decided for its shares.
func withScopes(g ledger.Grant, decided []scoped) ledger.Grant {
	same := func(share ledger.Share, decided scoped) bool { return share.Scope() == decided.scope }
	if slices.EqualFunc(g.Shares, decided, same) {
		return g
	}
	g.Shares = slices.Clone(g.Shares) // recorded shares are never changed
	for i := range g.Shares {
		g.Shares[i] = g.Shares[i].WithScope(decided[i].scope)
	}
	return g
}

// neighbours returns the grants of the other claims that the pods use. The claim of an orphan has
// ended: the pods use the claim that has its name now.
func (p *planner) neighbours(grant ledger.Grant, pods []*corev1.Pod) (others []ledger.Grant) {
	names := make(map[string]bool)
	for _, pod := range pods {
		for _, name := range ledger.ClaimNames(pod) {
			names[name] = name != grant.Name
		}
	}
	for _, other := range p.grants {
		if _, ended := p.orphans[other.UID]; !ended && other.Namespace == grant.Namespace && names[other.Name] {
			others = append(others, other.Grant)
		}
	}
	return others
}
