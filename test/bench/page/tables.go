package page

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/placement"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// pairs is what Prepare and Unprepare consist of.
func (p Page) pairs() (string, error) {
	var rows [][]string
	for _, load := range measure.Loads() {
		prefix := "PrepareUnprepare/" + load.String()
		whole, err1 := p.value(prefix+"/pair", measure.CPUUnit)
		files, err2 := p.value(prefix+"/files", measure.CPUUnit)
		kubelet, err3 := p.value("Pair/"+load.String()+"/pair", measure.CPUUnit)
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return "", err
			}
		}
		ratio := compare.Ratio(p.Values.Values(prefix+"/pair", measure.CPUUnit), p.Values.Values("Pair/"+load.String()+"/pair", measure.CPUUnit))
		rows = append(rows, []string{
			fmt.Sprint(load.CPUs), fmt.Sprint(load.Claims), plot.Duration(whole.Median), plot.Duration(files.Median),
			plot.Duration(max(whole.Median-files.Median, 0)), plot.Duration(kubelet.Median), fraction(ratio.Median),
		})
	}
	wall, err := p.value("PrepareUnprepare/disk/pair", "ns/op")
	if err != nil {
		return "", err
	}
	synced, err := p.value("PrepareUnprepare/disk/pair", "fsync-ns/op")
	if err != nil {
		return "", err
	}
	kubelet, err := p.value("Pair/disk/pair", "ns/op")
	if err != nil {
		return "", err
	}
	return `## Prepare and Unprepare
A claim of 8 CPUs begins and ends while others hold CPUs. "files" are the two checkpoints and the CDI spec, written and
removed without a driver; "our own part" is the rest. All files are in memory. The kubelet's pair is ` + "`Allocate`" + ` and
` + "`RemoveContainer`" + ` of its static CPU manager, which writes its checkpoint four times.

` + plot.Table([]string{"CPUs", "claims", "ours", "files", "our own part", "kubelet's pair", "ours / kubelet's"}, rows) + fmt.Sprintf(`
On the disk of this machine, with 512 CPUs and 32 claims, on the clock: ours takes %s and %s more in fsync; the
kubelet's pair takes %s with its four fsyncs.
`, spread(wall, plot.Duration), spread(synced, plot.Duration), spread(kubelet, plot.Duration)), nil
}

// placements is a table for each machine.
func (p Page) placements() string {
	text := fmt.Sprintf(`## Placement
One trace of %d claims on six generated machines. Claims ask for 1 to 32 CPUs, and together for up to 85 %% of the
machine. "Failed" counts claims that were not placed while enough CPUs were free. The rest are averages of the placed
claims: NUMA nodes, L3 caches, and cores that a claim shares with others. Programs are compared in this order, and a
later number only counts if all earlier ones are equal.

The first programs give a claim CPUs of one NUMA node, the kubelet with the policy `+"`single-numa-node`"+` of its Topology
Manager. The last two may give it CPUs of several: a claim of this driver lists alternatives, as `+"`firstAvailable`"+` does.
All take the first NUMA node that has room, so they fail for the same claims unless their choices differ.
`, p.Claims)
	for _, r := range p.Placements {
		text += fmt.Sprintf("\n**%s**: %d CPUs, %d NUMA nodes, %d L3 caches\n\n", r.Machine, r.CPUs, r.Zones, r.L3s)
		var rows [][]string
		for i, program := range placement.Programs() {
			s := r.Scores[i]
			averages := s.Averages()
			rows = append(rows, []string{
				program.Name, fmt.Sprint(s.FailedFree), fmt.Sprintf("%.3f", averages[0]), fmt.Sprintf("%.3f", averages[1]), fmt.Sprintf("%.3f", averages[2]), verdict(r, i),
			})
		}
		text += plot.Table([]string{"program", "failed", "NUMA nodes", "L3s", "shared cores", "this driver is"}, rows)
	}
	return text
}

func verdict(r placement.Result, i int) string {
	ours := rival(i)
	if ours == i {
		return ""
	}
	switch c := r.Scores[ours].Compare(r.Scores[i]); {
	case c < 0:
		return "better"
	case c > 0:
		return "worse"
	}
	return "equal"
}

// costs is what the other benchmarks printed, and sizes.
func (p Page) costs() string {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(p.Others)) {
		unit := measure.CPUUnit
		if p.Others.Values(name, unit) == nil {
			unit = "ns/op"
		}
		if values := p.Others.Values(name, unit); values != nil {
			rows = append(rows, []string{"`" + name + "`", plot.Duration(compare.Of(values).Median), map[bool]string{true: "CPU", false: "clock"}[unit == measure.CPUUnit]})
		}
	}
	var sizes [][]string
	for _, program := range p.Programs {
		sizes = append(sizes, []string{"`" + program.Name + "`", fmt.Sprintf("%.1f MB", float64(program.Bytes)/1e6), spread(compare.Of(program.Starts), plot.Duration)})
	}
	for _, functions := range []int{8, 16} {
		if size, err := p.value(fmt.Sprintf("Slice/zones=8/functions=%d", functions), "bytes"); err == nil {
			sizes = append(sizes, []string{fmt.Sprintf("ResourceSlice of 8 NUMA nodes and %d PCI functions", functions), kib(size.Median), ""})
		}
	}
	return "## Sizes\n" + plot.Table([]string{"what", "size", "start, user and system time"}, sizes) +
		"\n## Other benchmarks\nWhat else the repository measures. " + "`go doc`" + " of their packages, and the comments of the benchmarks, say what they do.\n\n" +
		plot.Table([]string{"benchmark", "time of one operation", "of"}, rows)
}

const notes = `## What is compared
- **The kubelet** is its own code: ` + "`k8s.io/kubernetes/pkg/kubelet/cm/cpumanager`" + `, in the version of
  [test/bench/go.mod](../test/bench/go.mod). Its functions that choose CPUs are not exported. So "choose" is ` + "`Allocate`" + ` and
  ` + "`RemoveContainer`" + ` with the state in memory. Ours is the choice, and taking the CPUs out of the free ones and putting
  them back. Both get the NUMA node: the scheduler gives it to the driver, the Topology Manager to the kubelet. What the
  kubelet would log is dropped before it is written.
- **Prepare** is what the driver does after the kubelet has called it. The kubelet's own work for a claim (reading it from
  the API server, a call over a socket, a checkpoint) is not part of it, and neither is the kubelet's admission of a pod
  on the other side.
- **Ways / no ways** is that of a claim with ways of a level-3 cache, on 512 CPUs, over that of a claim without. What the
  kernel takes for its own files is not counted.
- **Fragmented** means that of every ten cores four are held, and two have one held thread. Both choose from the same CPUs.
- **First fit** takes the free CPUs with the lowest numbers.
- **Claims** on a node hold up to 8 CPUs each, and less where many do not fit. 256 claims do not fit on 256 CPUs together
  with the measured one.
- ` + "`make bench-smoke`" + ` runs a part of this in less than a minute, and fails if a ratio is more than twice the recorded one
  ([test/bench/recorded.json](../test/bench/recorded.json)). It never judges a time.
`
