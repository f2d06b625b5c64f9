package kernel

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var keyPattern = regexp.MustCompile(`^[a-z-]+$`)

// parseSnapshot reads the output of snapshot.sh.
func parseSnapshot(text string) (Snapshot, error) {
	var s Snapshot
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !keyPattern.MatchString(key) {
			return Snapshot{}, fmt.Errorf("parse snapshot line %q: no key", line)
		}
		if err := s.add(key, strings.TrimSpace(value)); err != nil {
			return Snapshot{}, fmt.Errorf("parse snapshot line %q: %w", strings.TrimSpace(line), err)
		}
	}
	if s.Online.IsEmpty() {
		return Snapshot{}, fmt.Errorf("parse snapshot: no online CPU in %q", text)
	}
	return s, nil
}

func (s *Snapshot) add(key, value string) (err error) {
	switch {
	case key == "online":
		s.Online, err = cpuset.Parse(value)
	case key == "core":
		err = s.addCore(value)
	case key == "zone":
		zone := Zone{}
		zone.ID, err = strconv.Atoi(value)
		s.Zones = append(s.Zones, zone)
	case strings.HasPrefix(key, "zone-") && len(s.Zones) > 0:
		err = s.Zones[len(s.Zones)-1].add(key, value)
	case key == "process":
		process := Process{}
		process.PID, err = strconv.Atoi(value)
		s.Processes = append(s.Processes, process)
	case len(s.Processes) > 0:
		err = s.Processes[len(s.Processes)-1].add(key, value)
	default:
		err = fmt.Errorf("unexpected key %q", key)
	}
	return err
}

// addCore adds a core unless a sibling has added it.
func (s *Snapshot) addCore(list string) error {
	core, err := cpuset.Parse(list)
	if err != nil || core.IsEmpty() {
		return err
	}
	if !slices.Contains(s.Cores, core) {
		s.Cores = append(s.Cores, core)
	}
	return nil
}

func (z *Zone) add(key, value string) (err error) {
	switch key {
	case "zone-cpus":
		z.CPUs, err = cpuset.Parse(value)
	case "zone-free-hugepages":
		if value != "" {
			z.FreeHugepages, err = strconv.Atoi(value)
		}
	default:
		err = fmt.Errorf("unexpected key %q", key)
	}
	return err
}

func (p *Process) add(key, value string) (err error) {
	sets := map[string]*cpuset.Set{
		"cpus":           &p.CPUs,
		"mems":           &p.Mems,
		"own-cpus":       &p.OwnCPUs,
		"effective-cpus": &p.EffectiveCPUs,
		"effective-mems": &p.EffectiveMems,
		"exclusive-cpus": &p.ExclusiveCPUs,
	}
	switch set := sets[key]; {
	case set != nil:
		*set, err = cpuset.Parse(value)
	case key == "cgroup":
		p.Cgroup = value
	case key == "partition":
		p.Partition = value
	default:
		err = fmt.Errorf("unexpected key %q", key)
	}
	return err
}
