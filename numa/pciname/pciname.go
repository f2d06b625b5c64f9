// Package pciname reads the names of PCI vendors and products from the PCI ID database
// of a machine, the file pci.ids. It uses neither the network nor the database of
// another machine. The names are for people: no decision depends on them.
package pciname

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jaypipes/pcidb"
)

// databases are the paths where distributions install the database, relative to the
// root. Read uses the first one that exists.
var databases = [...]string{
	"usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids.gz", "usr/share/misc/pci.ids.gz",
}

// Names are the vendors and products of a database. The zero value has none.
type Names struct{ db *pcidb.DB }

// Read reads the database of the machine with the given root folder. A machine without
// a database is not an error: it has no names. A symbolic link that leads out of the
// folder is an error, because it points to a file of another machine.
func Read(folder string) (Names, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Names{}, err
	}
	defer func() { _ = root.Close() }()
	for _, name := range databases {
		info, err := root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path := filepath.Join(folder, name)
		if err != nil {
			return Names{}, fmt.Errorf("read %s: %w", path, err)
		}
		if !info.Mode().IsRegular() {
			return Names{}, fmt.Errorf("read %s: not a regular file", path)
		}
		db, err := load(path)
		return Names{db}, err
	}
	return Names{}, nil
}

// load always gives pcidb a path. Without one, pcidb looks in the user's ~/.cache before
// it looks below a root.
func load(path string) (db *pcidb.DB, err error) {
	defer func() {
		// pcidb slices columns out of each line without checking the length of the line.
		if reason := recover(); reason != nil {
			db, err = nil, fmt.Errorf("read %s: not a PCI ID database: %v", path, reason)
		}
	}()
	if db, err = pcidb.New(pcidb.WithPath(path)); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return db, nil
}

// Lookup returns the names of a vendor and of its product, as the database spells them.
// They may contain any characters. A name is "" if the database does not have it.
func (n Names) Lookup(vendor, device uint16) (vendorName, product string) {
	if n.db == nil {
		return "", ""
	}
	vendorID := fmt.Sprintf("%04x", vendor)
	if v := n.db.Vendors[vendorID]; v != nil {
		vendorName = v.Name
	}
	if p := n.db.Products[vendorID+fmt.Sprintf("%04x", device)]; p != nil {
		product = p.Name
	}
	return vendorName, product
}
