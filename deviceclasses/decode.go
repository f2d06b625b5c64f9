package deviceclasses

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// APIVersion is the apiVersion that every configuration must have, in addition to its
// kind.
const APIVersion = DriverName + "/v1alpha1"

// decode reads a JSON document of a kind into a configuration, whose TypeMeta is meta.
// Fields that the document does not name stay as they are. Anything that the kind does not
// have is an error of one line, which names the field and what is allowed.
func decode[C any](kind string, document []byte, config *C, meta *metav1.TypeMeta) error {
	*meta = metav1.TypeMeta{}
	unknown, err := kjson.UnmarshalStrict(document, config)
	if err != nil {
		return explain(err, "apiVersion, kind, "+fieldsOf[C]())
	}
	if meta.Kind != kind { // checked before the fields, because another kind has other fields
		return fmt.Errorf("kind: %q, allowed is %s", meta.Kind, kind)
	}
	if meta.APIVersion != APIVersion {
		return fmt.Errorf("apiVersion: %q, allowed is %s", meta.APIVersion, APIVersion)
	}
	if len(unknown) > 0 {
		return explainStrict(unknown[0], reflect.TypeFor[C]())
	}
	return nil
}

// explainStrict adds to the error about an unknown field of a document which fields are allowed
// beside it.
func explainStrict(err error, document reflect.Type) error {
	var field kjson.FieldError
	if !errors.As(err, &field) || !strings.HasPrefix(err.Error(), "unknown") {
		return err // a field that is there twice
	}
	parents := strings.Split(field.FieldPath(), ".")
	parents = parents[:len(parents)-1]
	of, head := document, ""
	for _, name := range parents {
		of = fieldType(of, name)
	}
	if len(parents) == 0 {
		head = "apiVersion, kind, "
	}
	return fmt.Errorf("%w, allowed are %s%s", err, head, strings.Join(fieldNames(of, ""), ", "))
}

// fieldType returns the type of a field, or of one of its elements if the name ends with an
// index, such as profiles[0]. It returns that of the document if it has no such field.
func fieldType(document reflect.Type, name string) reflect.Type {
	name, _, _ = strings.Cut(name, "[")
	for _, field := range reflect.VisibleFields(document) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != name {
			continue
		}
		of := field.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			return of
		}
	}
	return document
}

// decodeValid is decode for a configuration of a request, whose values it checks, too.
func decodeValid[C interface{ Validate() error }](kind string, document []byte, config *C, meta *metav1.TypeMeta) (C, error) {
	err := decode(kind, document, config, meta)
	if err == nil {
		err = (*config).Validate()
	}
	if err != nil {
		return *new(C), err
	}
	return *config, nil
}

// fieldsOf lists the fields of a type without its TypeMeta.
func fieldsOf[C any]() string {
	return strings.Join(fieldNames(reflect.TypeFor[C](), ""), ", ")
}

// fieldNames returns the names of the fields of a type without its TypeMeta. For a field
// that is a selection, it returns those of its fields.
func fieldNames(of reflect.Type, prefix string) (names []string) {
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" || name == "kind" || name == "apiVersion":
		case field.Type == reflect.TypeFor[*DeviceSelection]():
			names = append(names, fieldNames(field.Type.Elem(), prefix+name+".")...)
		default:
			names = append(names, prefix+name)
		}
	}
	return names
}

// choice is a field that has one of the allowed values, or none.
type choice struct {
	field, value string
	allowed      []string
}

// checkChoices refuses the first value that is not allowed.
func checkChoices(choices ...choice) error {
	for _, c := range choices {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			return fmt.Errorf("%s: %q, allowed are %s", c.field, c.value, strings.Join(c.allowed, ", "))
		}
	}
	return nil
}

// explain names the field whose value has the wrong type. fields are those of the document.
func explain(err error, fields string) error {
	var unsuitable *json.UnmarshalTypeError
	switch {
	case errors.As(err, &unsuitable) && unsuitable.Field == "":
		return fmt.Errorf("want a mapping of %s, not %s", fields, unsuitable.Value)
	case errors.As(err, &unsuitable):
		article := "a"
		if strings.ContainsAny(unsuitable.Value[:1], "ao") { // an array, an object
			article = "an"
		}
		return fmt.Errorf("%s: want a %s, not %s %s", documentPath(unsuitable.Field), word(unsuitable.Type), article, unsuitable.Value)
	}
	return oneLine(err)
}

// documentPath returns the path of a field without the names of embedded types, which are
// not in the document. Fields of a document start with a small letter.
func documentPath(field string) string {
	names := strings.Split(field, ".")
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name != "" && name[0] >= 'A' && name[0] <= 'Z' }), ".")
}

// word is what YAML calls values of the type.
func word(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "mapping"
	case reflect.Int:
		return "whole number"
	}
	return of.String()
}

// oneLine returns an error of one line unchanged. Some errors of other modules have
// several lines, which it joins.
func oneLine(err error) error {
	if line := message.OneLine(err.Error()); line != err.Error() {
		return errors.New(line)
	}
	return err
}

// maxError is the maximum length of an error about what a user has written, in bytes. The
// API server cuts a warning with such an error after 256 bytes.
const maxError = 240

// short shortens an error that quotes a long name or value.
func short(err error) error {
	if text := message.Short(err.Error(), maxError); text != err.Error() {
		return errors.New(text)
	}
	return err
}
