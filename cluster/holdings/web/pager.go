package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
)

// perPage is how many nodes, claims, pods or events are on one page.
const perPage = 25

// pager is the part of a list that a page shows.
type pager struct {
	Query          string // the search text
	Found          int
	First, Last    int // positions in the list, from 1
	Previous, Next string
	from, to       int
}

func newPager(r *http.Request, found int) pager {
	pages := max((found+perPage-1)/perPage, 1)
	page := min(max(whole(r.FormValue("page"), 1), 1), pages)
	p := pager{Query: r.FormValue("q"), Found: found, from: (page - 1) * perPage}
	p.to = min(p.from+perPage, found)
	p.First, p.Last = min(p.from+1, found), p.to
	address := func(to int) string {
		query := url.Values{}
		for _, name := range []string{"q", "show", "cpus"} {
			if value := r.FormValue(name); value != "" {
				query.Set(name, value)
			}
		}
		query.Set("page", strconv.Itoa(to))
		return "?" + query.Encode()
	}
	if page > 1 {
		p.Previous = address(page - 1)
	}
	if page < pages {
		p.Next = address(page + 1)
	}
	return p
}

// links says which part of the list the page shows, and leads to the next ones.
func (p pager) links() g.Node {
	part := "None"
	if p.Found > 0 {
		part = fmt.Sprintf("%d to %d of %d", p.First, p.Last, p.Found)
	}
	to := func(direction, label, path string) g.Node {
		return g.If(path != "", g.Group{text(" "), el("a", attr("rel", direction), attr("href", path), text(label))})
	}
	return el("p", attr("class", "pager"), text(part), to("prev", "previous", p.Previous), to("next", "next", p.Next))
}

// whole reads a number. If the text is not a number, it returns otherwise.
func whole(text string, otherwise int) int {
	number, err := strconv.Atoi(cmp.Or(text, "-"))
	if err != nil {
		return otherwise
	}
	return number
}
