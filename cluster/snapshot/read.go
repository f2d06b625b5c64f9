package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/dra-driver-numa/dra-driver-numa/internal/documents"
)

// Read adds the objects of a text, which is UTF-8, or UTF-16 as PowerShell writes it: YAML
// with any number of documents, or JSON with any number of values. If an object is a list,
// it adds its items. An error is one line that names the text and the document. After an
// error, the snapshot must not be used.
func (s *Snapshot) Read(name string, text io.Reader) error {
	return documents.Each(name, text, s.readDocument)
}

func (s *Snapshot) readDocument(document []byte, where string) error {
	if string(document) == "null" {
		return nil // the document has only comments
	}
	return s.readObject(document, metav1.TypeMeta{}, where)
}

// list is a list of objects: a typed list, or kubectl's List.
type list struct {
	Items []json.RawMessage `json:"items"`
}

// readObject adds an object, or the items of a list. Objects in a typed list need no kind
// of their own.
func (s *Snapshot) readObject(text []byte, meta metav1.TypeMeta, where string) error {
	if err := json.Unmarshal(text, &meta); err != nil {
		return errors.New("want an object with apiVersion and kind")
	}
	if meta.Kind == "" {
		return errors.New("object without kind")
	}
	if item, isList := strings.CutSuffix(meta.Kind, "List"); isList {
		return s.readList(text, metav1.TypeMeta{Kind: item, APIVersion: meta.APIVersion}, where)
	}
	version, foreign, err := newObject(meta)
	if err != nil {
		return err
	}
	if foreign {
		s.ignore(fullKind(meta))
		return nil
	}
	var object metav1.Object
	unknown, err := kjson.UnmarshalStrict(text, version.into)
	if version.knows != nil {
		unknown = slices.DeleteFunc(unknown, func(err error) bool { return !version.knows(err) })
	}
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err == nil {
		object, err = version.object()
	}
	if err != nil {
		return fmt.Errorf("%s%s: %w", meta.Kind, nameIn(text), err)
	}
	if err := s.Add(object, where); err != nil {
		return err
	}
	switch object.(type) {
	case *corev1.Pod, *Workload:
		if s.KeepTexts {
			s.keepText(identityOf(object), text)
		}
	}
	return nil
}

func (s *Snapshot) readList(text []byte, item metav1.TypeMeta, where string) error {
	var l list
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%sList: %w", item.Kind, err)
	}
	for i, text := range l.Items {
		if err := s.readObject(text, item, where); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

// nameIn returns the name of an object that cannot be decoded, if at least the name can
// be decoded.
func nameIn(text []byte) string {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(text, &object) != nil || object.Name == "" {
		return ""
	}
	return " " + object.Name
}
