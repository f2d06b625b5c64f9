// Package documents cuts texts that people give to tools into the documents that they have.
package documents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Each calls each for all documents of a text, as JSON, and with the name of the text and the
// number of the document. Documents of comments only are null. The text is UTF-8, or UTF-16 as
// PowerShell writes it: YAML with any number of documents, or JSON with any number of values.
// An error, also one of each, ends it, and becomes one line that names the document.
func Each(name string, text io.Reader, each func(document []byte, where string) error) error {
	utf8 := transform.NewReader(text, unicode.BOMOverride(transform.Nop)) // as kubectl does
	reader := utilyaml.NewYAMLReader(bufio.NewReader(utf8))
	for number := 1; ; {
		where := func() string { return fmt.Sprintf("%s, document %d", name, number) }
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		for err == nil && len(chunk) > 0 {
			var list []json.RawMessage
			list, chunk, err = cut(chunk)
			for i := 0; i < len(list) && err == nil; i++ {
				if err = each(list[i], where()); err == nil {
					number++
				}
			}
		}
		if err != nil {
			return fmt.Errorf("read %s: %s", where(), message.OneLine(err.Error()))
		}
	}
}

var (
	// begins finds the beginning of a document in braces: JSON, or YAML in flow style.
	begins = regexp.MustCompile(`^(?:\s|#.*\n|---.*\n)*\{`)
	// ends finds the line that ends a YAML document.
	ends = regexp.MustCompile(`\n\.\.\.(?:[ \t]+#.*)?(?:\s*\n|[ \t]+)`)
)

// cut returns the first documents of a text between two lines "---" as JSON, and the rest of
// the text. A parser of YAML alone would return the first document and drop the rest.
func cut(text []byte) (documents []json.RawMessage, rest []byte, err error) {
	begin := len(begins.Find(text))
	if begin > 0 {
		if documents = values(text[begin-1:]); documents != nil {
			return documents, nil, nil
		}
	}
	if end := ends.FindIndex(text); end != nil {
		text, rest = text[:end[0]+1], text[end[1]:]
	}
	if begin == 0 {
		document, err := yaml.YAMLToJSONStrict(text)
		return []json.RawMessage{document}, rest, err
	}
	// As an item of a list, the document has to end with its brace.
	list, err := yaml.YAMLToJSONStrict(slices.Concat(text[:begin-1], []byte("["), text[begin-1:], []byte("\n]")))
	if err == nil {
		err = json.Unmarshal(list, &documents)
	}
	return documents, rest, err
}

// values returns the values of a text that has only JSON, else nil.
func values(text []byte) (list []json.RawMessage) {
	if json.Valid(text) {
		return []json.RawMessage{text}
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			return nil
		}
		list = append(list, value)
	}
}
