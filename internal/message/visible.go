package message

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible replaces characters that a terminal obeys instead of showing them, and invisible
// ones: control characters except newline and tab, and format characters of
// Unicode, which change the direction of text, have no width, or spell words in invisible
// tags. Other ends of lines are replaced as well. They become escapes such as \u001b. In
// JSON, such an escape is the same character, so JSON stays valid and keeps its values.
// Bytes that are no UTF-8 become \ufffd, as which JSON reads them.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, isHidden) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if isHidden(r) || r == utf8.RuneError && size == 1 {
			for _, unit := range utf16.Encode([]rune{r}) { // JSON has two escapes for large ones
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

func isHidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029': // separators of lines and of paragraphs
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// Writer makes everything Visible that is written to a terminal, a file or a pipe. Only
// one goroutine may use it.
type Writer struct {
	// Raw is the writer without the replacements: for text that consists of the program's
	// own words and colours.
	Raw io.Writer

	begun []byte // first bytes of a character whose other bytes are not written yet
}

// NewWriter returns a Writer. A character may be divided between two writes.
func NewWriter(w io.Writer) *Writer { return &Writer{Raw: w} }

// Write writes the text. Of a character that is not complete, it keeps the bytes until
// the next Write.
func (w *Writer) Write(text []byte) (int, error) {
	all := slices.Concat(w.begun, text)
	whole := len(all) - incomplete(all)
	if _, err := io.WriteString(w.Raw, Visible(string(all[:whole]))); err != nil {
		return 0, err
	}
	w.begun = all[whole:]
	return len(text), nil
}

// incomplete returns the number of bytes at the end that may begin a character.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Joined returns the error with its text in one line, although it joins several errors.
func Joined(err error) error { return joined{err} }

type joined struct{ error }

func (e joined) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e joined) Unwrap() error { return e.error }
