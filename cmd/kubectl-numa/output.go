package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// documentVersion is the apiVersion of all answers in JSON and YAML. No API server has
// such objects.
const documentVersion = "cli.dra.numa/v1alpha1"

// Kinds of answers in JSON and YAML.
const (
	kindTopology    = "Topology"
	kindChoice      = "CPUChoice"
	kindStatus      = "ClusterStatus"
	kindPlacements  = "Placements"
	kindExplanation = "Explanation"
	kindEvictions   = "Evictions"
	kindLint        = "LintReport"
	kindFindings    = "FindingList"
	kindDifferences = "DifferenceList"
	kindVersions    = "Versions"
	kindFeatures    = "Features"
)

// itemList is an answer that has only items.
type itemList[T any] struct {
	Items []T `json:"items"`
}

// write prints a value as JSON or YAML, with the same keys, or as text for people. kind
// is that of the document, or empty for an object that has a kind.
func write(w io.Writer, format, kind string, value any, text func() string) error {
	var document []byte
	switch format {
	case "json":
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false) // the output is not for a web page
		if err := encoder.Encode(value); err != nil {
			return err
		}
		document = stamped(b.Bytes(), format, kind)
	case "yaml":
		encoded, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		document = stamped(encoded, format, kind)
	default:
		document = []byte(text())
	}
	_, err := w.Write(document)
	return err
}

// stamped adds apiVersion and kind to a document with at least one key.
func stamped(document []byte, format, kind string) []byte {
	switch {
	case kind == "":
		return document
	case format == "json":
		head := fmt.Sprintf("{\n  \"apiVersion\": %q,\n  \"kind\": %q,\n", documentVersion, kind)
		return []byte(head + strings.TrimPrefix(string(document), "{\n"))
	}
	return []byte(fmt.Sprintf("apiVersion: %s\nkind: %s\n", documentVersion, kind) + string(document))
}
