package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
)

// The functions in this file write the same JSON as encoding/json, in a tenth of the
// time. That matters because a change of one grant writes every grant of the node.

// appendCheckpoint appends the envelope with these texts of grants.
func appendCheckpoint(text []byte, version int, bootID string, grants iter.Seq[string], first interrupts.First, held []uncore.Held, defaults []Default) []byte {
	text = strconv.AppendInt(append(text, `{"version":`...), int64(version), 10)
	text = append(text, `,"sha256":"`...)
	sum := len(text)
	text = append(text, make([]byte, hex.EncodedLen(sha256.Size))...)
	text = append(text, `","state":`...)
	state := len(text)
	text = appendString(append(text, `{"bootID":`...), bootID)
	text = append(text, `,"grants":[`...)
	separator := ""
	for grant := range grants {
		text = append(append(text, separator...), grant...)
		separator = ","
	}
	text = append(text, ']')
	if !first.IsZero() {
		interrupts, _ := json.Marshal(first) // it always encodes
		text = append(append(text, `,"interrupts":`...), interrupts...)
	}
	if len(held) > 0 {
		encoded, _ := json.Marshal(held) // it always encodes
		text = append(append(text, `,"uncore":`...), encoded...)
	}
	if len(defaults) > 0 {
		encoded, _ := json.Marshal(defaults) // it always encodes
		text = append(append(text, `,"defaults":`...), encoded...)
	}
	text = append(text, '}')
	copy(text[sum:], checksum(text[state:]))
	return append(text, "}\n"...)
}

func (g *Grant) appendText(text []byte) []byte {
	text = appendString(append(text, `{"uid":`...), string(g.UID))
	text = appendString(append(text, `,"namespace":`...), g.Namespace)
	text = appendString(append(text, `,"name":`...), g.Name)
	if g.Order != 0 {
		text = strconv.AppendUint(append(text, `,"order":`...), g.Order, 10)
	}
	if g.Shares == nil {
		return append(text, `,"shares":null}`...)
	}
	text = append(text, `,"shares":[`...)
	for i := range g.Shares {
		if i > 0 {
			text = append(text, ',')
		}
		text = g.Shares[i].appendText(text)
	}
	return append(text, "]}"...)
}

// appendString appends a JSON string. Names in Kubernetes need no escapes. Other
// strings, as in a damaged file, are left to encoding/json.
func appendString(text []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(text, quoted...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}
