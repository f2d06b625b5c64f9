package web

import (
	"net/http"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
)

// claimsPage is a list of claims.
type claimsPage struct {
	Claims []claimRow
	pager
}

// claimRow is a claim with its sign.
type claimRow struct {
	Sign *picture
	Key  string
	holdings.Claim
	Holds []string
}

func (s *server) claims(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	query := strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	var found []*holdings.Claim
	for i := range now.cluster.Claims {
		claim := &now.cluster.Claims[i]
		isUser := func(u holdings.User) bool { return strings.Contains(strings.ToLower(u.Name), query) }
		if strings.Contains(strings.ToLower(claim.Key()), query) || slices.ContainsFunc(claim.Users, isUser) {
			found = append(found, claim)
		}
	}
	page := claimsPage{pager: newPager(r, len(found))}
	for _, claim := range found[page.from:page.to] {
		page.Claims = append(page.Claims, claimRow{Key: claim.Key(), Claim: *claim, Holds: holds(claim, "")})
	}
	s.render(w, now, http.StatusOK, "Claims", page.main())
}

func (p claimsPage) main() g.Node {
	return g.Group{
		search("/claims", "Claim or pod", p.Query),
		p.links(),
		scrolled(heads("Claim", "Used by", "Holds"), el("tbody", g.Map(p.Claims, claimRow.row))),
		p.links(),
	}
}

func (c claimRow) row() g.Node {
	held := text("nothing: the claim is not allocated")
	if c.Allocated {
		held = g.Map(c.Holds, plain)
	}
	return el("tr", rowHead(claimLink(c.Key)), el("td", c.users()), el("td", held))
}

// users returns the names of the objects that use the claim.
func (c claimRow) users() g.Node {
	if len(c.Users) == 0 {
		return text("none")
	}
	return g.Map(c.Users, func(u holdings.User) g.Node { return text(u.Name + " ") })
}
