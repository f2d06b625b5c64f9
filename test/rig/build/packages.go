package build

import (
	"context"
	"os"
	"path/filepath"
)

// fetchPackages downloads Debian packages and unpacks them into dir, which is emptied
// first; apt are the options that name their suite. Nothing is installed: no script of a
// package runs.
func (c Cache) fetchPackages(ctx context.Context, apt []string, dir string, packages []string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := c.run(ctx, dir, nil, "apt-get", append(append(apt, "download", "-q"), packages...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(dir + "/*.deb")
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if err := c.run(ctx, dir, nil, "dpkg", "-x", deb, dir); err != nil {
			return err
		}
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	return nil
}
