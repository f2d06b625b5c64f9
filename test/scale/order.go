package main

import (
	"context"
	"os"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// orders measures what zoneOrder costs.
func (c config) orders(ctx context.Context) error {
	if _, _, err := c.build(ctx); err != nil {
		return err
	}
	host.Settle(ctx, c.wait, func(line string) { progress("%s", line) })
	began := time.Now()
	m, err := shape.Machine()
	if err != nil {
		return err
	}
	s, err := shape.WithCPUs(m, page.OrderCPUs)
	if err != nil {
		return err
	}
	p := page.OrderPage{Conditions: page.Conditions{Machine: host.Describe(), Kubernetes: c.kubernetes, Pods: c.pods, Pairs: c.pairs}}
	for _, nodes := range c.sizes {
		placed, woken, err := c.measureOrders(ctx, trial.Cluster{Machine: m, Nodes: nodeNames(nodes), Proc: os.DirFS("/proc"), Stall: stall}, s)
		if err != nil {
			return err
		}
		p.Placed, p.Woken = append(p.Placed, placed...), append(p.Woken, woken...)
	}
	p.LoadAfter, p.Took = host.Load(), time.Since(began)
	return p.Write(c.pages)
}

// measureOrders starts a control plane, and runs all trials of a size.
func (c config) measureOrders(ctx context.Context, on trial.Cluster, s shape.Shape) (placed []trial.Ordered, woken []trial.Woken, err error) {
	down, err := c.start(ctx, &on)
	if err != nil {
		return nil, nil, err
	}
	if err := on.Prepare(ctx); err != nil {
		return nil, nil, err
	}
	for pair := range c.pairs {
		for _, i := range order(len(page.Everies), pair, c.pairs) {
			o, err := on.Order(ctx, s, trial.Load{Pods: c.pods}, page.Everies[i])
			if err != nil {
				return nil, nil, err
			}
			progress("%d nodes, pair %d of %d, %s: %s, %d writes, %+v", len(on.Nodes), pair+1, c.pairs, page.OrderName(o.Every), page.Line(o.Result), o.Writes, o.Evenness)
			placed = append(placed, o)
		}
		pods, err := on.Wake(ctx, s, c.pods, pair%2 == 1)
		if err != nil {
			return nil, nil, err
		}
		progress("%d nodes, pair %d of %d, Pending pods: %+v", len(on.Nodes), pair+1, c.pairs, pods)
		woken = append(woken, pods...)
	}
	return placed, woken, down()
}
