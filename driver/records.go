package driver

import (
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
)

// records are the files of the state directory.
type records struct {
	dir     *os.Root
	files   *durable.Files // in dir
	replace func(name string, text []byte) error
	text    []byte // the last checkpoint; the next one reuses its memory
}

func newRecords(dir *os.Root) *records {
	r := &records{dir: dir, files: durable.NewFiles(dir)}
	r.replace = func(name string, text []byte) error { return r.files.Replace(name, text, 0o600) }
	return r
}

// checkpoint returns the checkpoint of a boot with these grants. The text is valid until the
// next call.
func (r *records) checkpoint(bootID string, grants ledger.List) ([]byte, error) {
	text, err := grants.Text(r.text[:0], bootID)
	if err == nil {
		r.text = text
	}
	return text, err
}
