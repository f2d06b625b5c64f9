package chart

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// CachesText draws what claims hold of level-3 caches, as [Text] does it for everything.
// Of nodes that were asked, it draws which ways these are, and what the kernel counts.
func CachesText(w io.Writer, c holdings.Cluster, asked Resctrl, o draw.TextOptions) error {
	width := cmp.Or(o.Width, draw.DefaultWidth)
	return canvas.WriteText(w, arrangeCaches(c, asked).Layout(max(width, draw.MinWidth)), o.Colour)
}

// CachesSVG draws the same as a picture.
func CachesSVG(w io.Writer, c holdings.Cluster, asked Resctrl) error {
	return canvas.WriteSVG(w, arrangeCaches(c, asked).Layout(pictureWidth), canvas.Caption{
		ID: "caches", Title: "What claims hold of caches",
		Description: headlineOfCaches(c.Caches()) + ". Each level-3 cache is a box with a strip for each pool. Each claim has a letter and a colour.",
	})
}

// Texts that say what the drawing does not show.
const (
	noCaches = "No caches are divided: no NodeConfig sets cache, or no kernel supports it."
	noPlaces = "The cells are amounts, in the order of the claims. The objects of a cluster do not say which ways a claim has."
	isPlaces = "The first strip of each cache is its ways, the lowest first, as the kernel has them. The cells of the other strips are amounts."
)

func headlineOfCaches(caches holdings.Caches) string {
	divided, all := len(caches.Nodes), len(caches.Nodes)+len(caches.Undivided)
	return fmt.Sprintf("%s, caches divided on %d", canvas.Count(all, "node"), divided)
}

// arrangeCaches returns the whole drawing.
func arrangeCaches(c holdings.Cluster, asked Resctrl) canvas.Part {
	caches := c.Caches()
	if len(caches.Nodes) == 0 && len(asked) == 0 {
		return canvas.Text(noCaches, canvas.Plain)
	}
	all := canvas.Stack{Gap: 1}
	if len(caches.Nodes)+len(caches.Undivided) > 1 {
		all.Parts = append(all.Parts, canvas.Text(headlineOfCaches(caches), canvas.Heading))
	}
	for i := range caches.Nodes {
		all.Parts = append(all.Parts, cachesOf(c, &caches.Nodes[i], asked[caches.Nodes[i].Node]))
	}
	for _, node := range caches.Undivided {
		if r := asked[node]; r != nil {
			all.Parts = append(all.Parts, canvas.Stack{Parts: []canvas.Part{canvas.Text(node, canvas.Heading), suppliesOf(r), useOf(r.Claims)}})
		}
	}
	switch {
	case len(caches.Nodes) > 0 && len(asked) > 0:
		all.Parts = append(all.Parts, canvas.Text(isPlaces, canvas.Muted))
	case len(caches.Nodes) > 0:
		all.Parts = append(all.Parts, canvas.Text(noPlaces, canvas.Muted))
	}
	if len(caches.Undivided) > 0 {
		all.Parts = append(all.Parts, canvas.Text("Caches are not divided on "+firstNames(caches.Undivided)+".", canvas.Muted))
	}
	return all
}

// mostNames is the maximum number of nodes without divided caches that are named.
const mostNames = 10

func firstNames(names []string) string {
	text := strings.Join(names[:min(len(names), mostNames)], ", ")
	if more := len(names) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %s", canvas.Count(more, "more node"))
	}
	return text
}

// cachesOf draws the caches of a node: a box for each, and a legend. The node was not asked
// if r is nil.
func cachesOf(c holdings.Cluster, n *holdings.NodeCaches, r *nodestate.Resctrl) canvas.Part {
	s := scene{NewSigns()}
	var boxes canvas.Grid
	var signs []int
	for i := range n.Caches {
		content := s.cache(&n.Caches[i])
		if l3 := asked(r, &n.Caches[i]); l3 != nil {
			strip, shown := s.waysStrip(l3)
			content.Parts = append([]canvas.Part{strip}, content.Parts...)
			signs = append(signs, shown...)
		}
		boxes = append(boxes, canvas.Box{Title: titleOfCache(&n.Caches[i]), Look: canvas.CacheFrame, Content: content})
	}
	head := canvas.Stack{Parts: []canvas.Part{canvas.Text(n.Node, canvas.Heading), boxes}}
	shown := func(share *holdings.Share) bool { return share.Node == n.Node && len(describeCache(share)) > 0 }
	legend := s.legendFor(c, shown)
	if r == nil {
		return canvas.Stack{Gap: 1, Parts: []canvas.Part{head, legend}}
	}
	head.Parts = append(head.Parts, suppliesOf(r))
	return canvas.Stack{Gap: 1, Parts: []canvas.Part{head, canvas.Stack{Parts: []canvas.Part{legend, legendOfWays(signs)}}, useOf(r.Claims)}}
}

// asked returns what the node says of a cache; nil if it says nothing.
func asked(r *nodestate.Resctrl, cache *holdings.Cache) *nodestate.L3 {
	if r == nil || cache.L3 == nil {
		return nil
	}
	i := slices.IndexFunc(r.Caches, func(l3 nodestate.L3) bool { return int64(l3.ID) == *cache.L3 })
	if i < 0 {
		return nil
	}
	return &r.Caches[i]
}

// titleOfCache returns a title such as "cache 0, NUMA node 0".
func titleOfCache(cache *holdings.Cache) string {
	title := "cache, id not known"
	if cache.L3 != nil {
		title = fmt.Sprintf("cache %d", *cache.L3)
	}
	if cache.NUMANode != nil {
		title += fmt.Sprintf(", NUMA node %d", *cache.NUMANode)
	}
	return title
}

// cache draws the pools of a cache in one row, and a line of numbers for each.
func (s *scene) cache(cache *holdings.Cache) canvas.Stack {
	var strips sideBySide
	var lines []canvas.Part
	for i := range cache.Pools {
		pool := &cache.Pools[i]
		s.Meet(pool.Of)
		for _, r := range []*holdings.Resource{pool.Ways, pool.Members} {
			if r != nil {
				strips = append(strips, s.Strip(pool.Of, *r))
			}
		}
		lines = append(lines, numbersOf(pool))
		lines = append(lines, warnings(pool.Of)...)
	}
	return canvas.Stack{Parts: append([]canvas.Part{strips}, lines...)}
}

// sideBySide puts strips into a row, with a gap of one cell between them. If the row is
// too short, the next strip begins another one.
type sideBySide []canvas.Strip

// MinWidth returns the least width for the widest strip.
func (s sideBySide) MinWidth() (width int) {
	for _, strip := range s {
		width = max(width, strip.MinWidth())
	}
	return width
}

// Layout lays out every strip in at most this width.
func (s sideBySide) Layout(width int) canvas.Block {
	var b canvas.Block
	x, y := 0, 0
	for _, strip := range s {
		next := strip.Layout(width)
		if x > 0 && x+next.W > width {
			x, y = 0, b.H
		}
		b.Place(next, x, y)
		x += next.W + 1
	}
	return b
}

// numbersOf returns a line such as "guaranteed: ways 4 of 10 free, classes 6 of 8 free".
func numbersOf(pool *holdings.CachePool) canvas.Part {
	var numbers []string
	for _, r := range []*holdings.Resource{pool.Ways, pool.Members, pool.Classes} {
		if r != nil {
			numbers = append(numbers, r.Name+" "+Left(*r))
		}
	}
	text := cmp.Or(pool.Pool, pool.Device) + ": " + strings.Join(numbers, ", ")
	return canvas.Paragraph{Words: canvas.Words(text, canvas.Plain), Indent: 2}
}
