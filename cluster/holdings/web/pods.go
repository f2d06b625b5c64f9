package web

import (
	"net/http"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
)

// podsPage is a list of pods without a node.
type podsPage struct {
	Pods []holdings.Pending
	pager
}

func (s *server) pods(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	query := strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	var found []holdings.Pending
	for _, pod := range now.cluster.Pending {
		if strings.Contains(strings.ToLower(pod.Namespace+"/"+pod.Name), query) {
			found = append(found, pod)
		}
	}
	page := podsPage{pager: newPager(r, len(found))}
	page.Pods = found[page.from:page.to]
	s.render(w, now, http.StatusOK, "Pods without a node", page.main())
}

func (p podsPage) main() g.Node {
	return g.Group{
		search("/pods", "Pod", p.Query),
		p.links(),
		scrolled(heads("Pod", "The scheduler says"), el("tbody", g.Map(p.Pods, podRow))),
		p.links(),
	}
}

func podRow(pod holdings.Pending) g.Node {
	return el("tr", rowHead(podLink(pod)), el("td", text(pod.Message)))
}

// podPath returns the path of the page of a pod without a node.
func podPath(pod holdings.Pending) string {
	return "/pods/" + url.PathEscape(pod.Namespace) + "/" + url.PathEscape(pod.Name)
}

func podLink(pod holdings.Pending) g.Node { return anchor(podPath(pod), pod.Namespace+"/"+pod.Name) }
