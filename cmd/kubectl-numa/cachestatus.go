package main

import (
	"cmp"
	"io"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
)

// cachesOf returns the answer about level-3 caches.
func cachesOf(cluster holdings.Cluster) document {
	caches := cluster.Caches()
	return document{
		what: "status", kind: kindCaches, value: caches,
		text: func(style style) string { return poolsTable(style, caches) },
		svg:  func(w io.Writer) error { return chart.CachesSVG(w, cluster, nil) },
		names: func() []objectName {
			return nodesOf(caches.Nodes, func(n holdings.NodeCaches) string { return n.Node })
		},
	}
}

const poolColumns columns = "NODE,L3,POOL,WAYS FREE,CLASSES FREE,MEMBERS FREE,CLAIMS"

// poolsTable returns a row for each pool of each cache.
func poolsTable(s style, caches holdings.Caches) string {
	rows := [][]string{poolColumns.headers()}
	for _, node := range caches.Nodes {
		for _, cache := range node.Caches {
			id := "-"
			if cache.L3 != nil {
				id = strconv.FormatInt(*cache.L3, 10)
			}
			for _, pool := range cache.Pools {
				rows = append(rows, []string{
					node.Node, id, cmp.Or(pool.Pool, pool.Device),
					freeText(pool.Ways), freeText(pool.Classes), freeText(pool.Members), claimsOf(pool.Shares),
				})
			}
		}
	}
	return s.table(rows, 0)
}

// freeText returns a text such as "4 of 10", or "-" if the pool has no such capacity.
func freeText(r *holdings.Resource) string {
	if r == nil {
		return "-"
	}
	return amountText(r.Free) + " of " + amountText(r.Total)
}
