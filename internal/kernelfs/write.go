package kernelfs

import (
	"errors"
	"os"
	"path/filepath"
)

// Write writes text to a file below a directory, with one write(2). It does not create the
// file, because the kernel makes its files, and does not truncate it.
func Write(dir, name, text string) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
