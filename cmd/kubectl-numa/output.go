package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	yamltree "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// documentVersion is the apiVersion of all answers in JSON and YAML. No API server has
// such objects.
const documentVersion = "cli.dra.numa/v1alpha1"

// Kinds of answers in JSON and YAML.
const (
	kindTopology     = "Topology"
	kindMatrix       = "DeviceMatrix"
	kindChoice       = "CPUChoice"
	kindStatus       = "ClusterStatus"
	kindCaches       = "CacheStatus"
	kindPlacements   = "Placements"
	kindExplanation  = "Explanation"
	kindExplanations = "ExplanationList"
	kindEvictions    = "Evictions"
	kindLint         = "LintReport"
	kindFindings     = "FindingList"
	kindDifferences  = "DifferenceList"
	kindVersions     = "Versions"
	kindFeatures     = "Features"
	kindTranslations = "Translations"
	kindMigration    = "Migration"
)

// itemList is an answer that has only items.
type itemList[T any] struct {
	Items []T `json:"items"`
}

// document is an answer. It needs only what the formats of its command need.
type document struct {
	what   string // a noun that names the answer in errors
	kind   string // in JSON and YAML; empty for objects that have a kind
	value  any    // what JSON and YAML have, with the same keys
	stream []any  // in YAML, documents of their own instead of the value

	text  func(style) string    // for people
	json  func(io.Writer) error // the value in JSON, if its layout is not the usual one
	svg   func(io.Writer) error // a picture
	objs  func() document       // the answer as objects of Kubernetes
	names func() []objectName   // of the objects that the answer lists
	scope *scope                // which objects these are; nil if they have no namespace
}

// objects returns the document of objects of Kubernetes. Several objects are a List, or a
// stream of YAML documents. Both can be piped to kubectl create.
func objects[T any](what string, list []T) document {
	d := document{what: what}
	for i := range list {
		d.stream = append(d.stream, list[i])
	}
	if len(list) == 1 {
		d.value = list[0]
		return d
	}
	d.value = struct {
		metav1.TypeMeta `json:",inline"`
		Items           []T `json:"items"`
	}{metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, list}
	return d
}

// in returns the answer in the format of the printer.
func (d document) in(p *printer) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch p.format {
	case formatJSON:
		err = d.writeJSON(&b)
	case formatYAML:
		err = d.writeYAML(&b)
	case formatSVG:
		err = d.svg(&b)
	case formatObjs:
		err = d.objs().writeYAML(&b)
	case formatName:
		return d.namesText()
	case formatPath:
		return d.found(p)
	default:
		b.WriteString(d.text(style{p.format == formatWide, p.noHeaders, p.sortBy}))
	}
	if err != nil {
		return nil, d.unwritten(err)
	}
	return b.Bytes(), nil
}

func (d document) unwritten(err error) error {
	return &failure{fmt.Errorf("write %s: %w", d.what, err)}
}

func (d document) writeJSON(b *bytes.Buffer) error {
	var body bytes.Buffer
	write := d.json
	if write == nil {
		write = func(w io.Writer) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false) // the output is not for a web page
			return encoder.Encode(d.value)
		}
	}
	if err := write(&body); err != nil {
		return err
	}
	text := body.String()
	if d.kind != "" { // the document has at least one key
		fmt.Fprintf(b, "{\n  \"apiVersion\": %q,\n  \"kind\": %q,\n", documentVersion, d.kind)
		text = strings.TrimPrefix(text, "{\n")
	}
	b.WriteString(text)
	return nil
}

func (d document) writeYAML(b *bytes.Buffer) error {
	if d.kind != "" {
		fmt.Fprintf(b, "apiVersion: %s\nkind: %s\n", documentVersion, d.kind)
	}
	stream := d.stream
	if stream == nil {
		stream = []any{d.value}
	}
	for i, value := range stream {
		text, err := yaml.Marshal(value)
		if err == nil && message.Visible(string(text)) != string(text) {
			text, err = quoted(text)
		}
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return nil
}

// quoted returns the YAML with each text in double quotes that has a character which
// message.Writer replaces: only there is the escape the same character.
func quoted(text []byte) ([]byte, error) {
	var document yamltree.Node
	if err := yamltree.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	quote(&document)
	var b bytes.Buffer
	encoder := yamltree.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent() // as in the documents that need no quotes
	err := encoder.Encode(&document)
	return b.Bytes(), err
}

func quote(node *yamltree.Node) {
	if message.Visible(node.Value) != node.Value {
		node.Style = yamltree.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quote(child)
	}
}

// found returns what the template finds in the JSON document.
func (d document) found(p *printer) ([]byte, error) {
	var text, found bytes.Buffer
	if err := d.writeJSON(&text); err != nil {
		return nil, d.unwritten(err)
	}
	var value any
	// Numbers must not become floating-point numbers, which are printed as 1.6e+10.
	if err := utiljson.Unmarshal(text.Bytes(), &value); err != nil {
		return nil, d.unwritten(err)
	}
	if err := p.template.Execute(&found, value); err != nil {
		return nil, fmt.Errorf("--output %s: %w", formatPath, err)
	}
	return found.Bytes(), nil
}

// objectName names an object.
type objectName struct{ kind, group, namespace, name string }

// String returns the name as kubectl prints it.
func (o objectName) String() string {
	kind := strings.ToLower(o.kind)
	if o.group != "" {
		kind += "." + o.group
	}
	return kind + "/" + o.name
}

// podName returns the name of a pod that is written as namespace/name.
func podName(key string) objectName {
	namespace, name, _ := strings.Cut(key, "/")
	return objectName{kind: "Pod", namespace: namespace, name: name}
}

// nodesOf returns the names of nodes, each once, in the order of their first findings.
func nodesOf[T any](list []T, node func(T) string) (names []objectName) {
	for _, item := range list {
		name := objectName{kind: "Node", name: node(item)}
		if name.name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// namesText returns a line for each object.
func (d document) namesText() ([]byte, error) {
	names := d.names()
	if err := d.scope.oneNamespace(names); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, name := range names {
		fmt.Fprintln(&b, message.OneLine(name.String())) // a text of an object must not begin a line
	}
	return b.Bytes(), nil
}
