package plot

import (
	"os"
	"path/filepath"
)

// WritePage writes the text of a page as a file with the name, and its figures by their
// names, to the folder.
func WritePage(folder, name, text string, figures map[string]string) error {
	for name, svg := range figures {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644)
}
