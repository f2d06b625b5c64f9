package ledger

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

// Format is one kind of envelope.
type Format struct {
	Name    string                // in the file
	Newest  int                   // version that this build reads, and writes; the oldest one is 1
	Damaged func(err error) error // of a file that is torn, or was changed by another program
	Other   func(err error) error // of a file of another build
}

// Encode returns the file with this state.
func (f Format) Encode(state []byte) []byte {
	text := appendHeader(nil, f.Name, f.Newest, checksum(state))
	return append(append(text, state...), "}\n"...)
}

// Open returns the version and the state of a file.
func (f Format) Open(data []byte) (version int, state []byte, err error) {
	var file envelope
	if err := json.Unmarshal(data, &file); err != nil {
		return 0, nil, f.Damaged(err)
	}
	if file.Format != f.Name || file.Version < 1 || file.Version > f.Newest {
		return 0, nil, f.Other(fmt.Errorf("format %q, version %d, this build reads format %q, version %d",
			file.Format, file.Version, f.Name, f.Newest))
	}
	if sum := checksum(file.State); sum != file.SHA256 {
		return 0, nil, f.Damaged(fmt.Errorf("checksum %s, recorded is %q", sum, file.SHA256))
	}
	if whole := append(appendHeader(nil, f.Name, file.Version, file.SHA256), file.State...); !bytes.Equal(append(whole, "}\n"...), data) {
		return 0, nil, f.Damaged(errors.New("not as dra-numa writes it"))
	}
	return file.Version, file.State, nil
}

// Decode reads a state whose checksum is right, so it is what a build of the driver has
// written. encode must return the file again.
func (f Format) Decode(data, state []byte, into any, encode func() []byte) error {
	strict := json.NewDecoder(bytes.NewReader(state))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		return f.Other(err)
	}
	if !bytes.Equal(encode(), data) {
		return f.Other(errors.New("not in the form that this build writes"))
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
