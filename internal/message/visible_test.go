package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"two\nlines\tand a column":    "two\nlines\tand a column",
		"Zürich, 東京, \ufffd":          "Zürich, 東京, \ufffd",
		"\x1b]0;title\a":              `\u001b]0;title\u0007`,
		"new\rold\x7f":                `new\u000dold\u007f`,
		"C1 \u009b31m":                `C1 \u009b31m`,
		"bidi \u202e \u2066 \u200f":   `bidi \u202e \u2066 \u200f`,
		"line \u2028 paragraph\u2029": `line \u2028 paragraph\u2029`,
		"none \u200b \ufeff \u00ad":   `none \u200b \ufeff \u00ad`,
		"tags \U000e0041\U000e007f":   `tags \udb40\udc41\udb40\udc7f`,
		"C1 byte \x9b31m":             `C1 byte \ufffd31m`,
		"\xe2\x80":                    `\ufffd\ufffd`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("Visible(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestWriterThatFails(t *testing.T) {
	full := errors.New("full")
	if n, err := NewWriter(failing{full}).Write([]byte("x")); n != 0 || !errors.Is(err, full) {
		t.Errorf("wrote %d bytes, %v, want the error of the writer", n, err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// Whatever is written in whatever parts, a terminal gets nothing to obey, text without
// such characters is the same, and JSON has the same value.
func FuzzNothingIsHidden(f *testing.F) {
	f.Add("\x1b]0;x\a\u009b\u202e\xff", 3)
	f.Add("\U000e0041\u200b", 2)
	f.Add("\\\u2028\"Zürich", 7)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		var out bytes.Buffer
		w := NewWriter(&out)
		for _, part := range []string{text[:at], text[at:], "\n"} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("wrote %d bytes, %v", n, err)
			}
		}
		got := out.String()
		for _, r := range got {
			if unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' {
				t.Fatalf("%q has %U", got, r)
			}
		}
		if !utf8.ValidString(got) || got != Visible(text+"\n") || Visible(got) != got {
			t.Fatalf("%q is written as %q, want %q", text, got, Visible(text+"\n"))
		}
		var document bytes.Buffer
		if err := json.NewEncoder(NewWriter(&document)).Encode(text); err != nil {
			t.Fatal(err)
		}
		var value string
		if err := json.Unmarshal(document.Bytes(), &value); err != nil || value != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Fatalf("%q is in JSON %s, read as %q, %v", text, document.Bytes(), value, err)
		}
	})
}
