package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// legend says which letter stands for which claim, and what the claims hold here.
func (s *scene) legend(c holdings.Cluster) canvas.Part {
	return s.legendFor(c, func(*holdings.Share) bool { return true })
}

// legendFor is the legend of a drawing that shows only some shares.
func (s *scene) legendFor(c holdings.Cluster, shown func(*holdings.Share) bool) canvas.Part {
	if len(s.order) == 0 && len(s.admin) == 0 {
		return canvas.Stack{}
	}
	lines := canvas.Stack{}
	for _, key := range s.order {
		claim := c.Claim(key)
		text := key
		if claim != nil {
			text = legendOf(claim, shown)
		}
		lines.Parts = append(lines.Parts, canvas.Entry{Sample: s.Sample(key), Text: text, Column: 2})
	}
	free := canvas.Entry{Sample: canvas.Strip{{Cells: 1, Look: canvas.Free, Sign: freeSign}}, Text: "free", Column: 2}
	lines.Parts = append(lines.Parts, free)
	if len(s.admin) > 0 {
		lines.Parts = append(lines.Parts, canvas.Paragraph{
			Words: canvas.Words("admin access, which holds nothing: "+strings.Join(s.admin, ", "), canvas.Muted), Indent: 2,
		})
	}
	return lines
}

// legendOf returns a text such as "default/a, pod b: numa-1: CPUs 4-7, memory 1 GiB".
func legendOf(claim *holdings.Claim, shown func(*holdings.Share) bool) string {
	text := claim.Key()
	for _, user := range claim.Users {
		text += ", " + strings.TrimSuffix(user.Resource, "s") + " " + user.Name
	}
	if len(claim.Users) == 0 {
		text += ", not in use"
	}
	var shares []string
	for i := range claim.Shares {
		if !claim.Shares[i].Admin && shown(&claim.Shares[i]) {
			shares = append(shares, Describe(&claim.Shares[i]))
		}
	}
	return text + ": " + strings.Join(shares, "; ")
}

// Describe says in one line what a share holds and what is wrong with it. It omits the
// name of the share's claim.
func Describe(share *holdings.Share) string {
	var facts []string
	cpu := share.Amounts[string(deviceclasses.CapacityCPU)]
	switch {
	case share.CPUs != nil && !share.CPUs.IsEmpty():
		facts = append(facts, "CPUs "+share.CPUs.String())
		if !share.IdleCPUs.IsEmpty() {
			facts = append(facts, "of which "+share.IdleCPUs.String()+" are kept idle")
		}
	case cpu.Sign() > 0 && share.Reported:
		facts = append(facts, canvas.Count(int(cpu.Value()), "CPU")+", ids not known")
	case cpu.Sign() > 0:
		facts = append(facts, canvas.Count(int(cpu.Value()), "CPU")+", not reported as prepared yet")
	}
	facts = append(facts, Performance(share.Performance)...)
	ofCache := describeCache(share)
	facts = append(facts, ofCache...)
	for _, name := range slices.Sorted(maps.Keys(share.Amounts)) {
		if len(ofCache) > 0 {
			break // it says the amounts
		}
		if amount := share.Amounts[name]; name != string(deviceclasses.CapacityCPU) && amount.Sign() > 0 {
			facts = append(facts, Label(name)+" "+Amount(name, amount))
		}
	}
	facts = append(facts, describeFunction(share.Function)...)
	for _, condition := range share.Conditions {
		if condition.Status != "True" && (condition.Type != deviceclasses.ConditionExclusive || share.CPUs != nil && !share.CPUs.IsEmpty()) {
			facts = append(facts, fmt.Sprintf("not %s (%s)", condition.Type, condition.Reason))
		}
	}
	if len(facts) == 0 {
		return share.Device
	}
	return share.Device + ": " + strings.Join(facts, ", ")
}

// describeFunction says which PCI function a share holds.
func describeFunction(f *deviceclasses.FunctionStatus) (facts []string) {
	if f == nil {
		return nil
	}
	facts = append(facts, "PCI "+f.PCI)
	if len(f.Interfaces) > 0 {
		facts = append(facts, strings.Join(f.Interfaces, " "))
	}
	if len(f.Nodes) > 0 {
		facts = append(facts, strings.Join(f.Nodes, " "))
	}
	if f.CDIDevice != "" {
		facts = append(facts, "CDI device "+f.CDIDevice)
	}
	if f.Driver != "" {
		facts = append(facts, "bound to "+f.Driver)
	}
	return facts
}

// Label returns the name of a capacity for people, such as "hugepages 2Mi".
func Label(name string) string {
	if size, huge := strings.CutPrefix(name, deviceclasses.CapacityHugepagesPrefix); huge && size != "" {
		return "hugepages " + size
	}
	return name
}

// Amount returns an amount of a capacity with its unit. Only memory and hugepages are
// in bytes.
func Amount(name string, amount resource.Quantity) string {
	if name == string(deviceclasses.CapacityMemory) || strings.HasPrefix(name, deviceclasses.CapacityHugepagesPrefix) {
		return canvas.Size(uint64(max(amount.Value(), 0)))
	}
	return spelling.Text(amount)
}

// Left returns a text such as "3 of 4 free".
func Left(r holdings.Resource) string {
	if r.Total == nil || r.Free == nil {
		return Amount(r.Name, r.Held) + " held, total not known"
	}
	free, total := Amount(r.Name, *r.Free), Amount(r.Name, *r.Total)
	_, unit, _ := strings.Cut(total, canvas.Joint)
	return strings.TrimSuffix(free, canvas.Joint+unit) + " of " + total + " free"
}
