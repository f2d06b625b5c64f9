package web

import (
	"io"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// frame is what every page has around its main part.
type frame struct {
	Title   string
	Live    bool
	Version int
	Failure string // why the page is out of date; "" if it is not
	From    string
}

// document returns the whole page.
func (f frame) document(main g.Node) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		f.head(),
		h.Body(
			h.Data("version", strconv.Itoa(f.Version)),
			f.header(),
			h.Main(
				failure("This page is out of date: ", f.Failure),
				h.H1(g.Text(f.Title)),
				main,
			),
		),
	))
}

func (f frame) head() g.Node {
	return h.Head(
		h.Meta(h.Charset("utf-8")),
		h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
		h.Meta(h.Name("color-scheme"), h.Content("light dark")),
		h.TitleEl(g.Text(f.Title+" - kubectl numa")),
		h.Link(h.Rel("stylesheet"), h.Href("/style.css")),
		h.Link(h.Rel("icon"), h.Href("data:,")),
		g.If(f.Live, g.Group{
			h.NoScript(h.Meta(g.Attr("http-equiv", "refresh"), h.Content("10"))),
			h.Script(h.Src("/live.js"), h.Defer()),
		}),
	)
}

func (f frame) header() g.Node {
	return h.Header(
		h.Nav(anchor("/", "Nodes"), g.Text(" "), anchor("/claims", "Claims"), g.Text(" "), anchor("/pods", "Pods without a node")),
		h.P(
			h.Class("from"),
			g.Text(f.From),
			g.If(f.Live, g.Group{g.Text(", "), h.Span(h.ID("live"), g.Text("live"))}),
		),
	)
}

// anchor returns a link. path is escaped for a URL.
func anchor(path, label string) g.Node { return h.A(h.Href(path), g.Text(label)) }

// paragraph returns a paragraph, as a problem or as any other text.
func paragraph(isProblem bool, label string) g.Node {
	return h.P(g.If(isProblem, h.Class("problem")), g.Text(label))
}

func problem(label string) g.Node { return paragraph(true, label) }

func plain(label string) g.Node { return paragraph(false, label) }

// failure says why something failed, or returns nil if why is "".
func failure(before, why string) g.Node {
	return g.If(why != "", h.P(h.Class("problem"), h.Role("alert"), g.Text(before+why)))
}

// list returns a list of texts.
func list(texts []string) g.Node {
	return h.Ul(g.Map(texts, func(label string) g.Node { return h.Li(g.Text(label)) }))
}

// entry returns a term and its value, for a Dl.
func entry(term, value string) g.Node {
	return g.Group{h.Dt(g.Text(term)), h.Dd(g.Text(value))}
}

// known returns an entry, or nil if the value is "".
func known(term, value string) g.Node { return g.If(value != "", entry(term, value)) }

// knownList returns an entry with several values, or nil if there are none.
func knownList(term string, values []string) g.Node {
	return g.If(len(values) > 0, entry(term, commas(values)))
}

// commas joins texts.
func commas(texts []string) string { return strings.Join(texts, ", ") }

// heads returns the head of a table with the names of its columns.
func heads(columns ...string) g.Node {
	return h.THead(h.Tr(g.Map(columns, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) })))
}

// rowHead returns the first cell of a row.
func rowHead(content ...g.Node) g.Node { return h.Th(h.Scope("row"), g.Group(content)) }

// scrolled returns a table that scrolls if it is wider than the page.
func scrolled(content ...g.Node) g.Node { return h.Div(h.Class("scroll"), h.Table(content...)) }

// folded returns content that the user can open.
func folded(summary string, content g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), content)
}

// search returns the form above a list. field says what q searches.
func search(path, field, query string, more ...g.Node) g.Node {
	return h.Form(
		h.Method("get"), h.Action(path), h.Role("search"),
		h.Label(g.Text(field+" "), h.Input(h.Type("search"), h.Name("q"), h.Value(query))),
		g.Group(more),
		h.Button(g.Text("Search")),
	)
}

// shape returns an element of an SVG without content. It has no end tag, which El gives to
// all elements but those of HTML: the page of a large node has thousands of shapes.
func shape(name string, attributes ...g.Node) g.Node {
	return g.NodeFunc(func(w io.Writer) error {
		for _, part := range slices.Concat([]g.Node{g.Raw("<" + name)}, attributes, []g.Node{g.Raw("/>")}) {
			if err := part.Render(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// number returns an attribute in user units of an SVG.
func number(name string, value int) g.Node { return g.Attr(name, strconv.Itoa(value)) }
