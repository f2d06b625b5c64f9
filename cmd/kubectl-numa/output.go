package main

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"
)

// write prints a value as JSON or YAML, with the same keys, or as text for people.
func write(w io.Writer, format string, value any, text func() string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false) // the output is not for a web page
		return encoder.Encode(value)
	case "yaml":
		document, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(document)
		return err
	}
	_, err := io.WriteString(w, text())
	return err
}
