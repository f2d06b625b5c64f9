package migration

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// nodeConfig returns the NodeConfig, or nil if it says nothing. What most kubelets have in
// common is for all nodes, and the rest is in profiles.
func (p *plan) nodeConfig() (*deviceclasses.NodeConfig, error) {
	config := &deviceclasses.NodeConfig{TypeMeta: metav1.TypeMeta{APIVersion: deviceclasses.APIVersion, Kind: deviceclasses.NodeConfigKind}}
	empty := *config
	p.reserveForDaemon()
	config.NodeSettings = p.common()
	hosts := p.hostnames()
	for _, k := range p.kubelets {
		if k.ofPool {
			if k.selector == nil {
				continue
			}
			p.addLeaks(k)
			at := len(config.Profiles)
			if k.isWorker() { // the last profile counts
				at = 0
			}
			if !reflect.ValueOf(k.settings).IsZero() {
				config.Profiles = slices.Insert(config.Profiles, at, deviceclasses.NodeProfile{NodeSelector: k.selector, NodeSettings: k.settings})
			}
			continue
		}
		if own := without(k.settings, config.NodeSettings); !reflect.ValueOf(own).IsZero() {
			host := cmp.Or(hosts[k.node], k.node)
			config.Profiles = append(config.Profiles, deviceclasses.NodeProfile{NodeSelector: map[string]string{corev1.LabelHostname: host}, NodeSettings: own})
		}
	}
	if settings := p.cacheSettings(); settings != nil {
		if p.daemon != nil && len(p.kubelets) == 0 {
			settings.ReservedCPUs = p.daemon.reserved.String()
		}
		if p.selector == nil {
			config.Cache, config.ReservedCPUs = settings.Cache, cmp.Or(settings.ReservedCPUs, config.ReservedCPUs)
		} else {
			config.Profiles = append(config.Profiles, deviceclasses.NodeProfile{NodeSelector: p.selector, NodeSettings: *settings})
		}
	}
	if reflect.DeepEqual(*config, empty) {
		return nil, nil //nolint:nilnil // no file is no error
	}
	// The same rules as for the daemon.
	text, err := yaml.Marshal(config)
	if err == nil {
		_, err = deviceclasses.DecodeNodeConfig(text)
	}
	if err != nil {
		return nil, fmt.Errorf("what was read makes no NodeConfig: %w", err)
	}
	return config, nil
}

// isWorker reports whether the configuration is that of the pool worker, whose label the nodes
// of other pools have too.
func (k *kubelet) isWorker() bool {
	return maps.Equal(k.selector, map[string]string{roleLabel + "worker": ""})
}

// addLeaks lists what nodes of another pool have by the profile of worker alone, because a
// profile removes no field.
func (p *plan) addLeaks(k kubelet) {
	for _, worker := range p.kubelets {
		leak, own := worker.settings, settingsOf(&k.settings)
		for i, field := range settingsOf(&leak) {
			if !own[i].IsZero() {
				field.SetZero()
			}
		}
		if worker.isWorker() && !k.isWorker() && !reflect.ValueOf(leak).IsZero() {
			p.add(k.node, Line{
				Kind: kubeletKind, Field: "profiles", Value: "-", Outcome: ByHand,
				Says: "its nodes have the label of the pool worker too, so they get what only the profile of worker has: " + text(leak) + "; write their own into their profile, or select the nodes of worker by another label",
			})
		}
	}
}

// reserveForDaemon adds the CPUs of a daemon's groups to those that kubelets reserve, because
// the driver wants infra.cpus to be reserved.
func (p *plan) reserveForDaemon() {
	if p.daemon == nil {
		return
	}
	for i := range p.kubelets {
		reserved := &p.kubelets[i].settings.ReservedCPUs
		cpus, err := cpuset.Parse(*reserved)
		if err == nil { // addKubelet has parsed it
			*reserved = cpus.Union(p.daemon.reserved).String()
		}
	}
}

// settingsOf returns the fields that kubelets have.
func settingsOf(s *deviceclasses.NodeSettings) (fields []reflect.Value) {
	for _, field := range []any{&s.ReservedCPUs, &s.ReservedHugepages, &s.ReservedNodeMemory, &s.ReservedMemory} {
		fields = append(fields, reflect.ValueOf(field).Elem())
	}
	return fields
}

// common returns the fields that every kubelet has, with the value of most of them. A profile
// can change a field, but not remove it. Other nodes than those of a pool are not known.
func (p *plan) common() (common deviceclasses.NodeSettings) {
	if slices.ContainsFunc(p.kubelets, func(k kubelet) bool { return k.ofPool }) {
		return common
	}
	for i, field := range settingsOf(&common) {
		counts, most, all := map[string]int{}, 0, 0
		for j := range p.kubelets {
			value := settingsOf(&p.kubelets[j].settings)[i]
			if value.IsZero() {
				continue
			}
			all++
			key := text(value.Interface())
			if counts[key]++; counts[key] > most {
				most = counts[key]
				field.Set(value)
			}
		}
		if all < len(p.kubelets) {
			field.SetZero()
		}
	}
	return common
}

// without returns the fields that differ from those of other.
func without(s, other deviceclasses.NodeSettings) deviceclasses.NodeSettings {
	others := settingsOf(&other)
	for i, field := range settingsOf(&s) {
		if reflect.DeepEqual(field.Interface(), others[i].Interface()) {
			field.SetZero()
		}
	}
	return s
}

// hostnames returns the label of each node by its name. Without a Node, the label is the name.
func (p *plan) hostnames() map[string]string {
	hosts := map[string]string{}
	for i := range p.sources {
		var node metav1.PartialObjectMetadata
		if s := &p.sources[i]; s.Kind == "Node" && s.Group == "" && s.decode(&node) == nil {
			hosts[s.Name] = node.Labels[corev1.LabelHostname]
		}
	}
	return hosts
}
