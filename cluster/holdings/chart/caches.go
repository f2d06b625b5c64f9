package chart

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// CachesText draws what claims hold of level-3 caches, as [Text] does it for everything.
func CachesText(w io.Writer, c holdings.Cluster, o draw.TextOptions) error {
	width := cmp.Or(o.Width, draw.DefaultWidth)
	return canvas.WriteText(w, arrangeCaches(c).Layout(max(width, draw.MinWidth)), o.Colour)
}

// CachesSVG draws the same as a picture.
func CachesSVG(w io.Writer, c holdings.Cluster) error {
	return canvas.WriteSVG(w, arrangeCaches(c).Layout(pictureWidth), canvas.Caption{
		ID: "caches", Title: "What claims hold of caches",
		Description: headlineOfCaches(c.Caches()) + ". Each level-3 cache is a box with a strip for each pool. Each claim has a letter and a colour.",
	})
}

// Texts that say what the drawing does not show.
const (
	noCaches = "No caches are divided: no NodeConfig has cache, or the kernels cannot do it."
	noPlaces = "The cells are amounts, in the order of the claims. The objects of a cluster do not say which ways a claim has."
)

func headlineOfCaches(caches holdings.Caches) string {
	divided, all := len(caches.Nodes), len(caches.Nodes)+len(caches.Undivided)
	return fmt.Sprintf("%s, caches divided on %d", canvas.Count(all, "node"), divided)
}

// arrangeCaches returns the whole drawing.
func arrangeCaches(c holdings.Cluster) canvas.Part {
	caches := c.Caches()
	if len(caches.Nodes) == 0 {
		return canvas.Text(noCaches, canvas.Plain)
	}
	all := canvas.Stack{Gap: 1}
	if len(caches.Nodes)+len(caches.Undivided) > 1 {
		all.Parts = append(all.Parts, canvas.Text(headlineOfCaches(caches), canvas.Heading))
	}
	for i := range caches.Nodes {
		all.Parts = append(all.Parts, cachesOf(c, &caches.Nodes[i]))
	}
	all.Parts = append(all.Parts, canvas.Text(noPlaces, canvas.Muted))
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

// cachesOf draws the caches of a node: a box for each, and a legend.
func cachesOf(c holdings.Cluster, n *holdings.NodeCaches) canvas.Part {
	s := scene{NewSigns()}
	var boxes canvas.Grid
	for i := range n.Caches {
		boxes = append(boxes, canvas.Box{Title: titleOfCache(&n.Caches[i]), Look: canvas.CacheFrame, Content: s.cache(&n.Caches[i])})
	}
	shown := func(share *holdings.Share) bool { return share.Node == n.Node && len(describeCache(share)) > 0 }
	return canvas.Stack{Gap: 1, Parts: []canvas.Part{
		canvas.Stack{Parts: []canvas.Part{canvas.Text(n.Node, canvas.Heading), boxes}}, s.legendFor(c, shown),
	}}
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
