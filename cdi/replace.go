package cdi

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// ReplaceFile gives a file new content so that a crash or a power failure at
// any point leaves the old content or the new, never a part. A leftover
// "<name>.new" means nothing and is overwritten by the next call. One caller at
// a time per name.
func ReplaceFile(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	fresh := name + ".new"
	if err := writeSynced(dir, fresh, data, mode); err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(fresh)))
	}
	if err := dir.Rename(fresh, name); err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(fresh)))
	}
	return syncDir(dir, path.Dir(name)) // the rename itself is durable only now
}

func writeSynced(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	// A leftover may be a link or have another mode: start from nothing.
	if err := ignoreMissing(dir.Remove(name)); err != nil {
		return err
	}
	file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(mode) // the umask may have taken bits away
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(dir *os.Root, name string) error {
	file, err := dir.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
