package migration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/documents"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

const tomlEnding = ".toml"

// Endings are those of the names of files that Read reads. The kubelet reads .conf in its
// --config-dir.
func Endings() []string { return []string{".yaml", ".yml", ".json", tomlEnding, ".conf"} }

// Source is an object, or the configuration of a kubelet.
type Source struct {
	Kind      string
	Group     string // API group
	Namespace string
	Name      string
	// Node is the node of a kubelet's configuration. A file has no name of a node, so it is
	// the name of the file, which counts only if several differ.
	Node   string
	Owner  string // kind and name of the object that made it, such as "ReplicaSet web-1"
	fields map[string]any
	// variant is the kind whose rows count before those of Kind. list knows that of a kubelet.
	variant string
}

// String names the source in a list.
func (s *Source) String() string {
	switch {
	case s.Kind == kubeletKind:
		return s.Node
	case s.Namespace != "":
		return s.Namespace + "/" + s.Name
	}
	return s.Name
}

// decode fills a value from a part of the source, as lenient as the API server is with what
// it stores. An error is one line.
func (s *Source) decode(into any) error {
	text, err := json.Marshal(s.fields)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %s", s.Kind, s, message.OneLine(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// Read reads the objects of a text: YAML with any number of documents, or JSON. An object
// may be a list, or what a kubelet says of itself (configz). name is that of the file; the
// configuration of a kubelet belongs to the node that the file is named after. A file whose
// name ends with .toml is the configuration of an RDT daemon. Of those with .conf, only
// configurations of kubelets are read.
func Read(name string, text io.Reader) (sources []Source, err error) {
	ending := strings.ToLower(filepath.Ext(name))
	if ending == tomlEnding || ending == ".conf" {
		content, err := io.ReadAll(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if ending == tomlEnding {
			s, err := tomlSource(filepath.Base(name), string(content))
			if err != nil {
				return nil, fmt.Errorf("read %s: %s", name, message.OneLine(err.Error()))
			}
			return []Source{s}, nil
		}
		if !bytes.Contains(content, []byte(kubeletKind)) {
			return nil, nil
		}
		text = bytes.NewReader(content)
	}
	err = documents.Each(name, text, func(document []byte, _ string) error {
		var fields map[string]any
		if err := json.Unmarshal(document, &fields); err != nil || fields == nil {
			return err
		}
		sources, err = addObject(sources, fields, nodeOf(name))
		return err
	})
	if err != nil {
		return nil, err
	}
	return sources, nil
}

// nodeOf returns the name of a file without its ending.
func nodeOf(name string) string {
	name = filepath.Base(name)
	for _, ending := range Endings() {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// addObject adds an object, or the items of a list.
func addObject(sources []Source, fields map[string]any, node string) ([]Source, error) {
	if config, is := fields["kubeletconfig"].(map[string]any); is && fields["kind"] == nil {
		return append(sources, Source{Kind: kubeletKind, Group: kubeletGroup, Node: node, fields: config}), nil
	}
	kind, _ := fields["kind"].(string)
	if kind == "" {
		return nil, errors.New("object without kind")
	}
	if items, is := fields["items"].([]any); is && strings.HasSuffix(kind, "List") {
		for i, item := range items {
			one, is := item.(map[string]any)
			if !is {
				return nil, fmt.Errorf("items[%d]: want an object", i)
			}
			if one["kind"] == nil { // typed lists
				one["kind"], one["apiVersion"] = strings.TrimSuffix(kind, "List"), fields["apiVersion"]
			}
			var err error
			if sources, err = addObject(sources, one, node); err != nil {
				return nil, fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return sources, nil
	}
	source := Source{Kind: kind, Node: node, fields: fields}
	version, _ := fields["apiVersion"].(string)
	source.Group, _, _ = strings.Cut(version, "/")
	if !strings.Contains(version, "/") {
		source.Group = ""
	}
	var object struct {
		Metadata struct {
			Name, Namespace string
			OwnerReferences []struct{ Kind, Name string }
		}
	}
	if err := source.decode(&object); err != nil {
		return nil, err
	}
	source.Namespace, source.Name = object.Metadata.Namespace, object.Metadata.Name
	for _, owner := range object.Metadata.OwnerReferences {
		source.Owner = owner.Kind + " " + owner.Name
	}
	return append(sources, source), nil
}

// Pod returns the source of a pod of a cluster, of which only the scheduler matters.
func Pod(pod *corev1.Pod) Source {
	s := Source{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	s.fields = map[string]any{"spec": map[string]any{"schedulerName": pod.Spec.SchedulerName}}
	return s
}

// Node returns the source of a node of a cluster, of which only the name and the label of its
// host matter.
func Node(node *corev1.Node) Source {
	s := Source{Kind: "Node", Name: node.Name}
	s.fields = map[string]any{"metadata": map[string]any{"labels": map[string]any{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}}}
	return s
}
