package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// askedCaches is the answer about caches with what nodes say of them.
type askedCaches struct {
	holdings.Caches
	Resctrl []nodeResctrl `json:"resctrl"` // by node; those that answered
}

// nodeResctrl is what a node says.
type nodeResctrl struct {
	Node string `json:"node"`
	*nodestate.Resctrl
}

// checkAsk refuses flags that do not go together.
func (s *status) checkAsk() error {
	switch {
	case !s.askNodes:
		return nil
	case !s.cache:
		return errors.New("--ask-nodes: it is about caches, want --cache as well")
	case s.watch:
		return errors.New("--ask-nodes: nodes are asked once, want no --watch")
	case !s.from.canFollow():
		return errors.New("--ask-nodes: files have no answers of nodes, want a cluster without --filename")
	}
	return nil
}

// ask asks the chosen nodes that have the driver. Of those that do not answer, it says why.
func (s *status) ask(ctx context.Context, objects *snapshot.Snapshot, cluster holdings.Cluster) (chart.Resctrl, error) {
	config, client, err := s.from.connect()
	if err != nil {
		return nil, err
	}
	facts, err := collect.Driver(ctx, client, objects, s.from.driver)
	if err != nil {
		return nil, &hintedError{err, []string{"set --driver-namespace if you may not list ClusterRoleBindings; in that namespace, you need the verb list on daemonsets"}}
	}
	nodes := slices.DeleteFunc(facts.Nodes(), func(node string) bool { return cluster.Node(node) == nil })
	states, unread := collect.CacheStates(ctx, collect.NewExec(config, client), facts, nodes)
	for _, missing := range unread {
		s.note("the caches of %s are not known: %s", cmp.Or(missing.Node, "nodes"), missing.Why)
	}
	asked := make(chart.Resctrl)
	for _, node := range slices.Sorted(maps.Keys(states)) {
		state := states[node]
		if state.Resctrl == nil {
			s.note("the caches of %s are not known: %s", node, cmp.Or(state.Unread(nodestate.ResctrlPart), "the driver on the node is too old to say it"))
			continue
		}
		state.Resctrl.Claims = usesIn(s.from.scope.namespace, state.Resctrl.Claims)
		asked[node] = state.Resctrl
	}
	return asked, nil
}

// usesIn returns what is counted for the claims of a namespace, of all if it is "".
func usesIn(namespace string, all []nodestate.ClaimUse) []nodestate.ClaimUse {
	return slices.DeleteFunc(all, func(use nodestate.ClaimUse) bool {
		return namespace != "" && !strings.HasPrefix(use.Name, namespace+"/")
	})
}

// cacheUseOf returns the answer about level-3 caches with what nodes say.
func cacheUseOf(cluster holdings.Cluster, asked chart.Resctrl) document {
	value := askedCaches{Caches: cluster.Caches(), Resctrl: []nodeResctrl{}}
	for _, node := range slices.Sorted(maps.Keys(asked)) {
		value.Resctrl = append(value.Resctrl, nodeResctrl{node, asked[node]})
	}
	return document{
		what: "status", kind: kindCaches, value: value,
		text: func(style style) string { return useTable(style, value.Resctrl) },
		svg:  func(w io.Writer) error { return chart.CachesSVG(w, cluster, asked) },
		names: func() []objectName {
			return nodesOf(value.Resctrl, func(n nodeResctrl) string { return n.Node })
		},
	}
}

const useColumns columns = "NODE,L3,CLAIM,OCCUPIED,ALL MEMORY,NEAR MEMORY,GROUP,NOT COUNTED"

// useTable returns a row for each claim and cache.
func useTable(s style, nodes []nodeResctrl) string {
	rows := [][]string{useColumns.headers()}
	for _, node := range nodes {
		for i := range node.Claims {
			use := &node.Claims[i]
			add := func(l3 string, counts nodestate.Counts) {
				rows = append(rows, []string{
					node.Node, l3, use.Name, chart.Bytes(counts.OccupancyBytes), chart.Bytes(counts.TotalBytes), chart.Bytes(counts.LocalBytes),
					cmp.Or(use.Group, "-"), cmp.Or(use.Why, "-"),
				})
			}
			for _, cache := range use.Caches {
				add(strconv.Itoa(cache.L3), cache.Counts)
				for _, zone := range cache.Zones {
					add(fmt.Sprintf("%d, NUMA node %d", cache.L3, zone.NUMANode), zone.Counts)
				}
			}
			if len(use.Caches) == 0 {
				add("-", nodestate.Counts{})
			}
		}
	}
	return s.table(rows, 0)
}
