package driver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// envelope is a file of the state directory. Each state has exactly one valid text, so a
// change of any byte is detected.
type envelope struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"` // of State, in hex
	State   json.RawMessage `json:"state"`
}

// format is one kind of envelope.
type format struct {
	name    string                // in the file
	newest  int                   // version that this build reads; the oldest one is 1
	damaged func(err error) error // of a file that is torn, or was changed by another program
	other   func(err error) error // of a file of another build
}

// open returns the version and the state of a file.
func (f format) open(data []byte) (version int, state []byte, err error) {
	var file envelope
	if err := json.Unmarshal(data, &file); err != nil {
		return 0, nil, f.damaged(err)
	}
	if file.Format != f.name || file.Version < 1 || file.Version > f.newest {
		return 0, nil, f.other(fmt.Errorf("format %q, version %d, this build reads format %q, version %d",
			file.Format, file.Version, f.name, f.newest))
	}
	if sum := checksum(file.State); sum != file.SHA256 {
		return 0, nil, f.damaged(fmt.Errorf("checksum %s, recorded is %q", sum, file.SHA256))
	}
	if whole := append(appendHeader(nil, f.name, file.Version, file.SHA256), file.State...); !bytes.Equal(append(whole, "}\n"...), data) {
		return 0, nil, f.damaged(errors.New("not as dra-numa writes it"))
	}
	return file.Version, file.State, nil
}

// decode reads a state whose checksum is right, so it is what a build of the driver has
// written. encode must return the file again.
func (f format) decode(data, state []byte, into any, encode func() []byte) error {
	strict := json.NewDecoder(bytes.NewReader(state))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		return f.other(err)
	}
	if !bytes.Equal(encode(), data) {
		return f.other(errors.New("not in the form that this build writes"))
	}
	return nil
}

const afterSum = `","state":`

// appendHeader appends what comes before the state.
func appendHeader(text []byte, format string, version int, sum string) []byte {
	text = append(text, `{"format":"`+format+`","version":`...)
	text = strconv.AppendInt(text, int64(version), 10)
	text = append(append(text, `,"sha256":"`...), sum...)
	return append(text, afterSum...)
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
