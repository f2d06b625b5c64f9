// Package platform reads which machine it is. It uses ghw, which reads from a folder: the few
// files are copied into one, because a machine may be an archive, and the links of a stranger's
// folder must not lead out of it.
package platform

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/jaypipes/ghw/pkg/bios"
	"github.com/jaypipes/ghw/pkg/option"
	"github.com/jaypipes/ghw/pkg/product"
	"github.com/jaypipes/ghw/pkg/util"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

const (
	// mostBytes is more than the files have: the kernel limits a file of sysfs to a page.
	mostBytes = 4 << 10
	// mostText is more than makers write.
	mostText = 64
)

// unwanted are files of the folder that ghw reads, too. It warns of those that are not there.
var unwanted = map[string][]string{
	"sys/class/dmi/id":             {"product_family", "product_serial", "product_uuid", "product_sku", "product_version"},
	"sys/firmware/devicetree/base": {"serial-number"},
}

// Read reads the platform of the machine under root; nil if its firmware says nothing.
func Read(root fs.FS) (*numa.Platform, error) {
	folder, err := os.MkdirTemp("", "numa-platform-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	found, err := copyFiles(folder, root)
	if err != nil {
		return nil, fmt.Errorf("read which machine it is: %w", err)
	}
	if !found {
		return nil, nil
	}
	made, err := product.New(option.WithChroot(folder))
	if err != nil {
		return nil, fmt.Errorf("read product: %w", err)
	}
	firmware, err := bios.New(option.WithChroot(folder))
	if err != nil {
		return nil, fmt.Errorf("read BIOS: %w", err)
	}
	p := numa.Platform{
		Vendor: text(made.Vendor), Product: text(made.Name),
		BIOSVendor: text(firmware.Vendor), BIOSVersion: text(firmware.Version), BIOSDate: text(firmware.Date),
	}
	if p == (numa.Platform{}) {
		return nil, nil
	}
	return &p, nil
}

// copyFiles copies the files of each source that the machine has. What it lacks, and what nobody
// wants, is empty. Found is false if it has none.
func copyFiles(folder string, root fs.FS) (found bool, err error) {
	for source, others := range unwanted {
		if _, err := fs.Stat(root, source); err != nil {
			continue // the machine has the other one, or none
		}
		found = true
		for _, name := range others {
			if err := write(folder, path.Join(source, name), nil); err != nil {
				return found, err
			}
		}
		for _, name := range numa.PlatformFiles() {
			if !strings.HasPrefix(name, source+"/") {
				continue
			}
			content, err := read(root, name)
			if err == nil {
				err = write(folder, name, content)
			}
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// read returns nothing of a file that is not there or cannot be read.
func read(root fs.FS, name string) ([]byte, error) {
	file, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, mostBytes))
}

func write(folder, name string, content []byte) error {
	to := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// text returns a text of the firmware in one short line, and "" for what makers write if they
// have nothing to say.
func text(raw string) string {
	line := message.Short(message.Visible(message.OneLine(strings.Trim(raw, "\x00 \n"))), mostText)
	switch strings.ToLower(line) {
	case util.UNKNOWN, "none", "default string", "not specified", "not applicable", "to be filled by o.e.m.", "system manufacturer", "system product name":
		return ""
	}
	return line
}
