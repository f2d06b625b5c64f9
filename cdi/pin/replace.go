package pin

import (
	"errors"
	"io/fs"
	"os"
)

// openFresh opens the file that a writer fills before it renames it. Only one writer has it
// at a time, and the others wait until that one closes it. The kernel takes the lock from a
// writer that is killed, so the next one overwrites what it left.
func openFresh(dir *os.Root, name string) (*os.File, error) {
	for {
		file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		isFresh, err := lockFresh(dir, name, file)
		if err == nil && isFresh {
			err = file.Truncate(0)
		}
		if err == nil && isFresh {
			return file, nil
		}
		file.Close()
		if err != nil {
			return nil, err
		}
	}
}

// lockFresh returns false if the writer before has renamed or removed the file meanwhile.
func lockFresh(dir *os.Root, name string, file *os.File) (bool, error) {
	if err := flock(int(file.Fd())); err != nil {
		return false, &fs.PathError{Op: "flock", Path: name, Err: err}
	}
	own, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, now), err
}
