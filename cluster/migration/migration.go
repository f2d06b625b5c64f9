// Package migration says what takes the place of a configuration that people have today: of
// the kubelet's static managers, a NUMA exporter with its scheduler, and an RDT operator. It
// turns what was read into files for this driver, a list of every field, and the steps for a
// node. It reads no cluster and changes nothing.
package migration

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Outcome says what becomes of a field.
type Outcome string

// All outcomes, from the one that needs a reader most.
const (
	Unknown  Outcome = "unknown"  // this program does not know the field
	ByHand   Outcome = "by hand"  // somebody has to decide or to do something
	Replaced Outcome = "replaced" // a file of the plan, or the driver itself, has it
	Gone     Outcome = "gone"     // it has no effect any more, and nothing needs it
	Stays    Outcome = "stays"    // it keeps its effect where it is
)

func outcomes() []Outcome { return []Outcome{Unknown, ByHand, Replaced, Gone, Stays} }

// Line is what becomes of one field that some sources have with the same value.
type Line struct {
	Kind    string   `json:"kind"`
	Sources []string `json:"sources"` // names of the objects or files
	Field   string   `json:"field"`
	Value   string   `json:"value"`
	Outcome Outcome  `json:"outcome"`
	Says    string   `json:"says"` // one sentence
	// Unrelated is a field of the kubelet that has nothing to do with CPUs, memory and NUMA
	// nodes.
	Unrelated bool `json:"unrelated,omitempty"`
}

// File is a file that takes the place of what was read.
type File struct {
	Name string `json:"name"`
	For  string `json:"for"` // what it is, and how to use it
	Text string `json:"text"`
}

// Step is one step of switching a node.
type Step struct {
	Do     string `json:"do"`
	Breaks string `json:"breaks"` // what it may break
}

// Plan is the way over.
type Plan struct {
	Lines []Line `json:"lines"`
	Files []File `json:"files"`
	Steps []Step `json:"steps"`
}

// plan is a Plan while it is made.
type plan struct {
	Plan
	sources []Source
	index   map[string]int // of lines, by what makes them equal

	kubelets   []kubelet
	workloads  []workload
	daemon     *daemon           // nil if its file was not read
	selector   map[string]string // of nodes with RDT; nil for all
	policies   []string          // of topology managers
	scopes     []string
	schedulers []string // names of those that will be gone, as far as they were read
	translates bool     // webhook.translate is on
}

// Make makes the plan. The error is one line about a source.
func Make(sources []Source) (Plan, error) {
	p := &plan{sources: sources, index: map[string]int{}}
	p.Lines, p.Files, p.Steps = []Line{}, []File{}, []Step{}
	for i := range sources {
		if err := p.read(&sources[i]); err != nil {
			return Plan{}, err
		}
	}
	p.addParts()
	p.addSchedulers()
	if err := p.addFiles(); err != nil {
		return Plan{}, err
	}
	p.addSteps()
	slices.SortStableFunc(p.Lines, func(a, b Line) int {
		return cmp.Compare(slices.Index(outcomes(), a.Outcome), slices.Index(outcomes(), b.Outcome))
	})
	return p.Plan, nil
}

// read lists the fields of a source, and keeps those that files are made of.
func (p *plan) read(s *Source) error {
	if s.Kind != rmdWorkloadKind || s.ofPod() { // addWorkload lists the others
		p.list(s)
	}
	switch s.Kind {
	case kubeletKind:
		return p.addKubelet(s)
	case poolKind:
		return p.addKubeletConfig(s)
	case profileKind:
		return p.addProfile(s)
	case topologyKind:
		return p.addTopology(s)
	case rmdWorkloadKind:
		return p.addWorkload(s)
	case rmdConfigKind:
		return p.addRMDConfig(s)
	case rmdFileKind:
		return p.addRMDFile(s)
	}
	return nil
}

// add adds a line, or a source to one that says the same.
func (p *plan) add(source string, line Line) {
	key := strings.Join([]string{line.Kind, line.Field, line.Value, string(line.Outcome), line.Says}, "\x00")
	i, has := p.index[key]
	if !has {
		i = len(p.Lines)
		p.index[key] = i
		p.Lines = append(p.Lines, line)
	}
	if !slices.Contains(p.Lines[i].Sources, source) {
		p.Lines[i].Sources = append(p.Lines[i].Sources, source)
	}
}

// addFiles writes the files.
func (p *plan) addFiles() error {
	config, err := p.nodeConfig()
	if err != nil {
		return err
	}
	values := map[string]any{}
	if config != nil {
		text, err := yaml.Marshal(config)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, File{"node.yaml", "a NodeConfig, which is also the value config in values.yaml", string(text)})
		if values["config"], err = fieldsOf(config); err != nil {
			return err
		}
	}
	if translation := p.translation(); translation != nil {
		p.translates = true
		values["webhook"] = map[string]any{"enabled": true, "translate": translation}
	}
	if len(values) > 0 {
		text, err := yaml.Marshal(values)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, File{"values.yaml", "values of the Helm chart: helm install --values values.yaml", string(text)})
	}
	return p.addTemplates()
}

// fieldsOf returns the fields of a NodeConfig as the chart has them.
func fieldsOf(config *deviceclasses.NodeConfig) (fields map[string]any, err error) {
	text, err := yaml.Marshal(config)
	if err == nil {
		err = yaml.Unmarshal(text, &fields)
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	return fields, err
}
