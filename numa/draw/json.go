package draw

import (
	"bufio"
	"encoding/json"
	"io"
)

// JSON writes the document with one line for each node, CPU and device. The output is
// short, but people can still read it and compare it line by line.
func JSON(w io.Writer, d Document) error {
	out := bufio.NewWriter(w)
	platform, err := json.Marshal(d.Platform)
	if err != nil {
		return err
	}
	_, _ = out.WriteString("{\n  \"platform\": ") // Flush returns the first error
	_, _ = out.Write(platform)
	_, _ = out.WriteString(",\n")
	if err := writeList(out, "nodes", d.Nodes, ","); err != nil {
		return err
	}
	if err := writeList(out, "cpus", d.CPUs, ","); err != nil {
		return err
	}
	if err := writeList(out, "devices", d.Devices, ""); err != nil {
		return err
	}
	_, _ = out.WriteString("}\n")
	return out.Flush()
}

func writeList[T any](out *bufio.Writer, key string, list []T, after string) error {
	_, _ = out.WriteString("  \"" + key + "\": [")
	separator := "\n    "
	for i := range list {
		line, err := json.Marshal(&list[i])
		if err != nil {
			return err
		}
		_, _ = out.WriteString(separator)
		_, _ = out.Write(line)
		separator = ",\n    "
	}
	if len(list) > 0 {
		_, _ = out.WriteString("\n  ")
	}
	_, _ = out.WriteString("]" + after + "\n")
	return nil
}
