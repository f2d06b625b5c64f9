package web

import (
	"io"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
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
	return g.Group{g.Raw("<!doctype html>"), el("html", attr("lang", "en"),
		f.head(),
		el("body",
			attr("data-version", strconv.Itoa(f.Version)),
			f.header(),
			el("main",
				failure("This page is out of date: ", f.Failure),
				el("h1", text(f.Title)),
				main,
			),
		),
	)}
}

func (f frame) head() g.Node {
	return el("head",
		el("meta", attr("charset", "utf-8")),
		el("meta", attr("name", "viewport"), attr("content", "width=device-width, initial-scale=1")),
		el("meta", attr("name", "color-scheme"), attr("content", "light dark")),
		el("title", text(f.Title+" - kubectl numa")),
		el("link", attr("rel", "stylesheet"), attr("href", "/style.css")),
		el("link", attr("rel", "icon"), attr("href", "data:,")),
		g.If(f.Live, g.Group{
			el("noscript", el("meta", attr("http-equiv", "refresh"), attr("content", "10"))),
			el("script", attr("src", "/live.js"), attr("defer")),
		}),
	)
}

func (f frame) header() g.Node {
	return el("header",
		el("nav", anchor("/", "Nodes"), text(" "), anchor("/claims", "Claims"), text(" "), anchor("/pods", "Pods without a node")),
		el("p",
			attr("class", "from"),
			text(f.From),
			g.If(f.Live, g.Group{text(", "), el("span", attr("id", "live"), text("live"))}),
		),
	)
}

// anchor returns a link. path is escaped for a URL.
func anchor(path, label string) g.Node { return el("a", attr("href", path), text(label)) }

// paragraph returns a paragraph, as a problem or as any other text.
func paragraph(isProblem bool, label string) g.Node {
	return el("p", g.If(isProblem, attr("class", "problem")), text(label))
}

func problem(label string) g.Node { return paragraph(true, label) }

func plain(label string) g.Node { return paragraph(false, label) }

// failure says why something failed, or returns nil if why is "".
func failure(before, why string) g.Node {
	return g.If(why != "", el("p", attr("class", "problem"), attr("role", "alert"), text(before+why)))
}

// list returns a list of texts.
func list(texts []string) g.Node {
	return el("ul", g.Map(texts, func(label string) g.Node { return el("li", text(label)) }))
}

// entry returns a term and its value, for a Dl.
func entry(term, value string) g.Node {
	return g.Group{el("dt", text(term)), el("dd", text(value))}
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
	return el("thead", el("tr", g.Map(columns, func(name string) g.Node { return el("th", attr("scope", "col"), text(name)) })))
}

// rowHead returns the first cell of a row.
func rowHead(content ...g.Node) g.Node { return el("th", attr("scope", "row"), g.Group(content)) }

// scrolled returns a table that scrolls if it is wider than the page.
func scrolled(content ...g.Node) g.Node {
	return el("div", attr("class", "scroll"), el("table", content...))
}

// folded returns content that the user can open.
func folded(summary string, content g.Node) g.Node {
	return el("details", el("summary", text(summary)), content)
}

// search returns the form above a list. field says what q searches.
func search(path, field, query string, more ...g.Node) g.Node {
	return el("form",
		attr("method", "get"), attr("action", path), attr("role", "search"),
		el("label", text(field+" "), el("input", attr("type", "search"), attr("name", "q"), attr("value", query))),
		g.Group(more),
		el("button", text("Search")),
	)
}

// el, attr and text are El, Attr and Text of gomponents. The compiler would copy those, with
// the functions that render them, to every place that calls them. There are hundreds: the
// program would be 0.3 MB larger.
//
//go:noinline
func el(name string, content ...g.Node) g.Node { return g.El(name, content...) }

//go:noinline
func attr(name string, value ...string) g.Node { return g.Attr(name, value...) }

//go:noinline
func text(content string) g.Node { return g.Text(content) }

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
func number(name string, value int) g.Node { return attr(name, strconv.Itoa(value)) }
