package documents

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(text string) (list []string, err error) {
	err = Each("file", strings.NewReader(text), func(document []byte, where string) error {
		list = append(list, where+": "+string(document))
		if string(document) == `"bad"` {
			return errors.New("wrong\nhere")
		}
		return nil
	})
	return list, err
}

func TestEveryDocumentIsRead(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"a: 1\n---\nb: 2\n":             {`file, document 1: {"a":1}`, `file, document 2: {"b":2}`},
		"{\"a\":1}\n{\"b\":2}{\"c\":3}": {`file, document 1: {"a":1}`, `file, document 2: {"b":2}`, `file, document 3: {"c":3}`},
		"a: 1\n...\n---\nb: 2\n":        {`file, document 1: {"a":1}`, `file, document 2: {"b":2}`},
		"a: 1\n...\n{b: 2}\n":           {`file, document 1: {"a":1}`, `file, document 2: {"b":2}`},
		"\xff\xfea\x00:\x00 \x001\x00":  {`file, document 1: {"a":1}`},
		"# nothing\n":                   {"file, document 1: null"},
	} {
		got, err := read(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestErrorNamesTheDocument(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\nbad\n":     "read file, document 2: wrong here",
		"{a: 1} b\n":           "read file, document 1: ",
		"{\"a\":1}\n{\"b\":\n": "read file, document 1: ",
		"a: 1\na: 2\n":         "read file, document 1: ",
	} {
		if _, err := read(text); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
