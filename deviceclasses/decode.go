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

// APIVersion is the apiVersion that every configuration must have, in addition to its
// kind.
const APIVersion = DriverName + "/v1alpha1"

// schema is what decode must know about a kind of configuration.
type schema struct {
	kind   string
	fields string // names of all fields
	below  string // names of the fields of list entries
	pages  string // the same for entries of reservedHugepages
}

// decode reads a JSON document into config, whose TypeMeta is meta. Fields that the
// document does not name stay as they are. Anything that the kind does not have is an
// error of one line, which names the field and what is allowed.
func (s schema) decode(document []byte, config any, meta *metav1.TypeMeta) error {
	*meta = metav1.TypeMeta{}
	unknown, err := kjson.UnmarshalStrict(document, config)
	if err != nil {
		return s.explain(err)
	}
	if meta.Kind != s.kind { // checked before the fields, because another kind has other fields
		return fmt.Errorf("kind: %q, allowed is %s", meta.Kind, s.kind)
	}
	if meta.APIVersion != APIVersion {
		return fmt.Errorf("apiVersion: %q, allowed is %s", meta.APIVersion, APIVersion)
	}
	if len(unknown) > 0 {
		fields := s.fields
		switch text := unknown[0].Error(); {
		case strings.Contains(text, "reservedHugepages["):
			fields = s.pages
		case strings.Contains(text, "]"):
			fields = s.below
		}
		return fmt.Errorf("%w, allowed are %s", unknown[0], fields)
	}
	return nil
}

// explain names the field whose value has the wrong type.
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

// oneLine returns an error of one line unchanged. Some errors of other modules have
// several lines, which it joins.
func oneLine(err error) error {
	if line := message.OneLine(err.Error()); line != err.Error() {
		return errors.New(line)
	}
	return err
}
