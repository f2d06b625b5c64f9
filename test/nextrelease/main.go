// Command nextrelease writes an overlay for go build, with which this tree becomes a
// made-up next release: its checkpoint has a version that this tree does not know. With it,
// make upgrade-test shows what a rollback from such a release does.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "folder of this repository")
	out := flag.String("out", "", "folder for overlay.json, which go build -overlay reads, and the changed files")
	flag.Parse()
	if err := write(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "nextrelease: error:", err)
		os.Exit(1)
	}
}

// write writes the overlay and the changed files. Paths in the overlay are absolute, so go
// build may run in any folder.
func write(root, out string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	changed, err := apply(func(file string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, file))
		return string(text), err
	})
	if err != nil {
		return err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range changed {
		path := filepath.Join(out, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		overlay.Replace[filepath.Join(root, file)] = path
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "overlay.json"), text, 0o644)
}
