package kernelfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// FirstLines are those of files of the host that are read again and again. The files stay
// open: a read from the start of a file of cgroup v2 or sysfs shows its current content, and
// opening it costs ten times as much. The zero value has none.
type FirstLines struct {
	files map[string]*file
}

// file is a file and what it had when it was last read.
type file struct {
	open *os.File // nil: could not be opened, or reading failed
	fd   int      // of open
	last []byte   // its first line, or an error
}

// maxBytes is how much of the line is compared. It is enough for a list of 500 ranges.
const maxBytes = 4096

// Follow follows the files with these names below root, and no others, and reads them all.
func (f *FirstLines) Follow(root fs.FS, names []string) {
	known := f.files
	f.files = make(map[string]*file, len(names))
	for _, name := range names {
		one := known[name]
		if one == nil {
			one = &file{}
		}
		one.changed(root, name)
		f.files[name] = one
		delete(known, name)
	}
	for _, one := range known {
		one.close()
	}
}

// Changed reports whether a file has another first line than in the last call of Changed or
// Follow. A file that cannot be read reads as its error.
func (f *FirstLines) Changed(root fs.FS) (changed bool) {
	for name, one := range f.files {
		changed = one.changed(root, name) || changed
	}
	return changed
}

// Close closes all files, and follows none any more.
func (f *FirstLines) Close() {
	for _, one := range f.files {
		one.close()
	}
	f.files = nil
}

// changed reads the first line, and reports whether it differs from the last one.
func (f *file) changed(root fs.FS, name string) bool {
	var buf [maxBytes]byte
	now, err := f.read(root, name, buf[:])
	if err != nil {
		f.close() // the next call opens it again: another file may have the name then
		now = []byte(err.Error())
	}
	if bytes.Equal(now, f.last) {
		return false
	}
	f.last = append(f.last[:0], now...)
	return true
}

func (f *file) read(root fs.FS, name string, buf []byte) ([]byte, error) {
	if f.open == nil {
		opened, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		kept, isFile := opened.(*os.File)
		if !isFile {
			return nil, errors.Join(errors.New("not a file of the host"), opened.Close())
		}
		f.open, f.fd = kept, int(kept.Fd())
	}
	n, err := readStart(f.fd, buf)
	line, _, _ := bytes.Cut(buf[:max(n, 0)], []byte("\n"))
	return line, err
}

func (f *file) close() {
	if f.open != nil {
		_ = f.open.Close() // opened for reading
		f.open = nil
	}
}
