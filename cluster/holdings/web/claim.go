package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// claimPage is the page of a claim.
type claimPage struct {
	*holdings.Claim
	Waiting []holdings.Pending // pods without a node that use the claim
	Asks    []ask
	Holds   []holding
}

// ask is a request, with its amounts as text.
type ask struct {
	holdings.Request
	Amounts []string
}

// holding is a share as text.
type holding struct {
	holdings.Share
	Text    string
	Amounts []string
}

func (s *server) claim(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	key := r.PathValue("namespace") + "/" + r.PathValue("name")
	claim := now.cluster.Claim(key)
	if claim == nil {
		s.message(w, http.StatusNotFound, "There is no claim "+key+".")
		return
	}
	page := claimPage{Claim: claim}
	for i := range now.cluster.Pending {
		if pod := now.cluster.Pending[i]; pod.Namespace == claim.Namespace && pod.Names(claim.Name) {
			page.Waiting = append(page.Waiting, pod)
		}
	}
	for _, request := range claim.Requests {
		a := ask{Request: request}
		for _, name := range slices.Sorted(maps.Keys(request.Capacity)) {
			a.Amounts = append(a.Amounts, canvas.Printable(chart.Label(name)+" "+chart.Amount(name, request.Capacity[name])))
		}
		page.Asks = append(page.Asks, a)
	}
	for i := range claim.Shares {
		h := holding{Share: claim.Shares[i], Text: canvas.Printable(chart.Describe(&claim.Shares[i]))}
		for _, name := range slices.Sorted(maps.Keys(h.Share.Amounts)) {
			h.Amounts = append(h.Amounts, canvas.Printable(chart.Label(name)+" "+chart.Amount(name, h.Share.Amounts[name])))
		}
		page.Holds = append(page.Holds, h)
	}
	s.render(w, now, http.StatusOK, key, page.main())
}

func (p claimPage) main() g.Node {
	held := problem("Nothing: the claim is not allocated.")
	if p.Allocated {
		held = g.Map(p.Holds, holding.card)
	}
	return g.Group{
		g.If(p.Deleting, problem("This claim is being deleted.")),
		el("h2", text("Used by")),
		p.users(),
		el("h2", text("Holds")),
		held,
		el("h2", text("Asks for")),
		g.Map(p.Asks, ask.card),
		g.If(len(p.Constraints) > 0, g.Group{el("h2", text("Constraints")), list(p.Constraints)}),
		g.If(len(p.Parameters) > 0, g.Group{el("h2", text("Parameters")), g.Map(p.Parameters, code)}),
	}
}

// code returns a text that keeps its line breaks.
func code(label string) g.Node { return el("pre", text(label)) }

// users lists the objects that use the claim, and the pods that wait for a node.
func (p claimPage) users() g.Node {
	return el("ul",
		g.Map(p.Users, userItem),
		g.Map(p.Waiting, func(pod holdings.Pending) g.Node {
			return el("li", text("pod "), anchor(podPath(pod), pod.Name), text(", which has no node; its page says why"))
		}),
		g.If(len(p.Users)+len(p.Waiting) == 0, el("li", text("none"))),
	)
}

func userItem(u holdings.User) g.Node {
	kind := u.Resource
	if kind == "pods" {
		kind = "pod"
	}
	return el("li", text(kind+" "+u.Name), onNode(" on ", u.Node), g.If(u.Phase != "", text(", "+u.Phase)))
}

// onNode returns a link to a node with a text before it, or nil if the node is "".
func onNode(before, node string) g.Node {
	return g.If(node != "", g.Group{text(before), nodeLink(node)})
}

// card shows a share.
func (s holding) card() g.Node {
	return el("section",
		attr("class", "card"),
		el("h3", text(s.Device+" "), el("small", text(s.Driver+", for request "+s.Request), onNode(", on ", s.Node))),
		g.If(s.Admin, plain("Admin access, which holds nothing.")),
		el("dl",
			knownList("Amounts", s.Amounts),
			s.cpus(),
			functionEntries(s.Function),
			cacheEntries(s.Cache),
			g.Iff(s.Mems != nil, func() g.Node { return entry("Memory of NUMA nodes", s.Mems.String()) }),
			known("Why these CPUs", s.Why),
			known("Partition", s.Partition),
			performanceEntries(s.Performance),
			known("Scope", s.Scope),
			s.mixed(),
		),
		g.If(!s.Reported && !s.Admin, problem("The driver has not reported this share as prepared, so its CPUs are not known.")),
		g.Map(s.Conditions, conditionLine),
	)
}

func (s holding) cpus() g.Node {
	return g.Group{
		g.Iff(s.CPUs != nil, func() g.Node { return entry("CPUs", cmp.Or(s.CPUs.String(), "none")) }),
		known("Kept idle", s.IdleCPUs.String()),
	}
}

// mixed says that containers also run on CPUs that the claim does not hold.
func (s holding) mixed() g.Node {
	if !s.Mixed {
		return nil
	}
	const label = "the containers also run on the shared CPUs"
	if s.SharedCPUs == nil {
		return entry("Mixed", label)
	}
	return entry("Mixed", label+": "+s.SharedCPUs.String())
}

func functionEntries(f *deviceclasses.FunctionStatus) g.Node {
	if f == nil {
		return nil
	}
	return g.Group{
		entry("PCI function", f.PCI),
		knownList("Network interfaces of the host", f.Interfaces),
		knownList("Device nodes", f.Nodes),
		known("CDI device of another driver", f.CDIDevice),
		known("Kernel driver bound for the claim", f.Driver),
	}
}

func cacheEntries(c *deviceclasses.CacheStatus) g.Node {
	if c == nil {
		return nil
	}
	ways := strconv.Itoa(c.Ways)
	if c.MaxWays > c.Ways {
		ways += fmt.Sprintf(", up to %d while they are free", c.MaxWays)
	}
	return g.Group{
		entry("Cache", fmt.Sprintf("pool %s of cache %d, for the CPUs of request %s", c.Pool, c.L3, c.Request)),
		g.If(c.Ways != 0, entry("Ways", ways)),
		g.If(c.BandwidthPercent != 0, entry("Limit of the memory bandwidth of each core", fmt.Sprintf("%d%%", c.BandwidthPercent))),
		g.If(c.BandwidthMBps != 0, entry("Limit of the memory bandwidth", fmt.Sprintf("%d MBps", c.BandwidthMBps))),
		entry("Group of resctrl", c.Group),
	}
}

func performanceEntries(p *deviceclasses.PerformanceStatus) g.Node {
	if p == nil {
		return nil
	}
	var staying []string
	for _, interrupt := range p.Interrupts {
		staying = append(staying, interrupt.Name+" ("+interrupt.Why+")")
	}
	return g.Group{
		g.Map(p.Frequencies, func(f deviceclasses.FrequencyStatus) g.Node {
			return entry("Frequency", strings.Join(chart.Frequency(f, p.Asked), ", "))
		}),
		g.Map(p.Uncore, func(die deviceclasses.UncoreStatus) g.Node {
			return known(fmt.Sprintf("Lowest uncore frequency of die %d of package %d", die.Die, die.Package), die.MinFrequency)
		}),
		g.Iff(p.Asked.IdleLatency != nil, func() g.Node {
			return entry("Longest time to wake up", fmt.Sprintf("%d us", *p.Asked.IdleLatency))
		}),
		known("Interrupts", p.Asked.Interrupts),
		knownList("Interrupts that the kernel does not move", staying),
	}
}

func conditionLine(c holdings.Condition) g.Node {
	label := c.Type + ": " + c.Status + ", " + c.Reason
	if c.Message != "" {
		label += ": " + c.Message
	}
	return paragraph(c.Status != "True", label)
}

// card shows a request.
func (a ask) card() g.Node {
	what := "class " + a.Class + ", all devices"
	if a.Count != 0 {
		what = "class " + a.Class + ", " + canvas.Count(int(a.Count), "device")
	}
	if a.Admin {
		what += ", admin access"
	}
	return el("section",
		attr("class", "card"),
		el("h3", text(a.Name+" "), el("small", text(what))),
		g.If(len(a.Amounts) > 0, plain(commas(a.Amounts))),
		g.Map(a.Selectors, code),
	)
}

// claimPath returns the path of the page of a claim.
func claimPath(namespace, name string) string {
	return "/claims/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// claimLink returns a link to the claim with a key.
func claimLink(key string) g.Node {
	namespace, name, _ := strings.Cut(key, "/")
	return anchor(claimPath(namespace, name), key)
}
