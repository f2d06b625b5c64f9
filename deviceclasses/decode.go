package deviceclasses

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// APIVersion is what every configuration has to say of itself beside its kind.
const APIVersion = DriverName + "/v1alpha1"

// schema is what decode has to know of a kind of configuration.
type schema struct {
	kind   string
	fields string // all there are
	below  string // those of the entries of its lists
}

// decode reads a JSON document into the configuration whose TypeMeta is meta;
// what the document does not name stays as it is. Whatever the kind does not
// have is an error of one line, which names the field and what is allowed.
func (s schema) decode(document []byte, config any, meta *metav1.TypeMeta) error {
	*meta = metav1.TypeMeta{}
	unknown, err := kjson.UnmarshalStrict(document, config)
	if err != nil {
		return s.explain(err)
	}
	if meta.Kind != s.kind { // before the fields, which are those of another kind
		return fmt.Errorf("kind: %q, allowed is %s", meta.Kind, s.kind)
	}
	if meta.APIVersion != APIVersion {
		return fmt.Errorf("apiVersion: %q, allowed is %s", meta.APIVersion, APIVersion)
	}
	if len(unknown) > 0 {
		fields := s.fields
		if strings.Contains(unknown[0].Error(), "]") {
			fields = s.below
		}
		return fmt.Errorf("%w, allowed are %s", unknown[0], fields)
	}
	return nil
}

// explain says which field a value does not suit.
func (s schema) explain(err error) error {
	var unsuitable *json.UnmarshalTypeError
	switch {
	case errors.As(err, &unsuitable) && unsuitable.Field == "":
		return fmt.Errorf("want a mapping of %s, not %s", s.fields, unsuitable.Value)
	case errors.As(err, &unsuitable):
		article := "a"
		if strings.ContainsAny(unsuitable.Value[:1], "ao") { // an array, an object
			article = "an"
		}
		return fmt.Errorf("%s: want a %s, not %s %s", unsuitable.Field, word(unsuitable.Type), article, unsuitable.Value)
	}
	return oneLine(err)
}

// word is what YAML calls values of the type.
func word(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "mapping"
	}
	return of.String()
}

// oneLine keeps an error that is one line, and shortens one of another module that is not.
func oneLine(err error) error {
	if line := message.OneLine(err.Error()); line != err.Error() {
		return errors.New(line)
	}
	return err
}
