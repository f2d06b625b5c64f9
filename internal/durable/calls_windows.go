package durable

import (
	"io/fs"
	"os"
)

// No program writes durable files on Windows: kubectl-numa, the only one that runs there,
// imports packages that do.

func (f *Files) createNew(name string, mode fs.FileMode) (*os.File, error) {
	return f.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

func (f *Files) rename(from, to string) error { return f.dir.Rename(from, to) }
