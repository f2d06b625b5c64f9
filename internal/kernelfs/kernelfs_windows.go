package kernelfs

import (
	"io/fs"
	"os"
)

// Dir returns the files below a directory. Windows has no files of a Linux kernel to save
// time with.
func Dir(dir string) fs.FS { return os.DirFS(dir) }
