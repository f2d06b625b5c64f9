package deviceclasses

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// fieldRow is a value of a field as JSON, none for a field that is left out, and
// what becomes of it: the error, else the value. Class is the value that the class
// has when the claim says this.
type fieldRow struct{ class, json, want, err string }

// texts are the rows of a field with a text that is empty by default and may be this one.
func texts(field, valid string) []fieldRow {
	quoted := fmt.Sprintf("%q", valid)
	return []fieldRow{
		{json: "", want: ""}, // default
		{json: `""`, want: ""},
		{json: "null", want: ""},
		{json: quoted, want: valid},
		{class: quoted, json: "", want: valid},
		{class: quoted, json: `""`, want: ""},
		{json: "1", err: field + ": want a string, not a number"},
		{json: "true", err: field + ": want a string, not a bool"},
		{json: "[]", err: field + ": want a string, not an array"},
		{json: "{}", err: field + ": want a string, not an object"},
	}
}

// oneOf are the rows of a field that has one of a few values.
func oneOf(field string, values ...string) []fieldRow {
	last := values[len(values)-1]
	rows := append(texts(field, values[1]),
		fieldRow{class: fmt.Sprintf("%q", values[0]), json: fmt.Sprintf("%q", last), want: last})
	for _, value := range values {
		rows = append(rows, fieldRow{json: fmt.Sprintf("%q", value), want: value})
		for _, near := range []string{strings.ToUpper(value), value + " ", "x" + value, value + `\n`} {
			rows = append(rows, fieldRow{
				json: `"` + near + `"`,
				err:  fmt.Sprintf("%s: \"%s\", allowed are %s", field, near, strings.Join(values, ", ")),
			})
		}
	}
	return rows
}

// lists are the rows of the field locked, for these fields.
func lists(a, b, all string) []fieldRow {
	quoted := func(name string) string { return fmt.Sprintf("[%q]", name) }
	return []fieldRow{
		{json: "", want: "[]"}, // default
		{json: "null", want: "[]"},
		{json: "[]", want: "[]"},
		{json: quoted(a), want: "[" + a + "]"},
		{json: fmt.Sprintf("[%q, %q]", a, b), want: "[" + a + " " + b + "]"},
		{class: quoted(a), json: "", want: "[" + a + "]"},
		{class: quoted(a), json: quoted(b), want: "[" + b + "]"},
		{class: quoted(a), json: "[]", want: "[]"},
		{json: fmt.Sprintf("%q", a), err: "locked: want a list, not a string"},
		{json: "[1]", err: "locked: want a string, not a number"},
		{json: fmt.Sprintf("[%q, %q]", a, "smt"), err: `locked[1]: "smt", allowed are ` + all},
	}
}

// zoneFields are the rows of each field: default, valid, edge, invalid.
func zoneFields() map[string][]fieldRow {
	return map[string][]fieldRow{
		"cores":        oneOf("cores", "whole", "thread", "one-thread-per-core"),
		"l3":           oneOf("l3", "prefer", "require", "any"),
		"placement":    oneOf("placement", "pack", "spread", "distribute"),
		"coreType":     oneOf("coreType", "performance", "efficient"),
		"partition":    oneOf("partition", "root", "isolated", "none"),
		"memoryPolicy": oneOf("memoryPolicy", "bind", "preferred", "interleave", "weighted-interleave"),
		"mixed": {
			{json: "", want: "false"},
			{json: "true", want: "true"},
			{json: "false", want: "false"},
			{json: "null", want: "false"},
			{class: "true", json: "", want: "true"},
			{class: "true", json: "false", want: "false"},
			{json: `"true"`, err: "mixed: want a bool, not a string"},
			{json: "1", err: "mixed: want a bool, not a number"},
			{json: "TRUE", err: "invalid character 'T' looking for beginning of value"},
		},
		"locked": lists("partition", "mixed", "cores, l3, placement, coreType, partition, mixed, memoryPolicy"),
	}
}

// deviceFields are the same of a DeviceConfig.
func deviceFields() map[string][]fieldRow {
	return map[string][]fieldRow{
		"driver": append(texts("driver", "vfio-pci"),
			fieldRow{json: `"vfio-pci "`, err: `driver: "vfio-pci ", allowed is vfio-pci`},
			fieldRow{json: `"VFIO-PCI"`, err: `driver: "VFIO-PCI", allowed is vfio-pci`},
			fieldRow{json: `"vfio"`, err: `driver: "vfio", allowed is vfio-pci`},
			fieldRow{json: `"../nvme"`, err: `driver: "../nvme", allowed is vfio-pci`},
			fieldRow{json: `"a\nb"`, err: `driver: "a\nb", allowed is vfio-pci`},
		),
		"locked": lists("driver", "driver", "driver"),
	}
}

func TestEveryFieldOfAZoneConfig(t *testing.T) {
	testEveryField(t, zoneHead, zoneFields(), ZoneConfig.DecodeOver)
}

func TestEveryFieldOfADeviceConfig(t *testing.T) {
	testEveryField(t, deviceHead, deviceFields(), DeviceConfig.DecodeOver)
}

func testEveryField[C any](t *testing.T, head string, rows map[string][]fieldRow, decodeOver func(C, []byte) (C, error)) {
	t.Helper()
	document := func(field, value string) []byte {
		if value == "" {
			return []byte(head + "}")
		}
		return fmt.Appendf(nil, "%s, %q: %s}", head, field, value)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[C]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "kind" || name == "apiVersion" {
			continue
		}
		if len(rows[name]) == 0 {
			t.Errorf("field %s has no rows", name)
		}
		for _, row := range rows[name] {
			var none C
			class, err := decodeOver(none, document(name, row.class))
			if err != nil {
				t.Fatal(err)
			}
			config, err := decodeOver(class, document(name, row.json))
			if row.err != "" {
				if err == nil || err.Error() != row.err {
					t.Errorf("%s %s: error %v, want %s", name, row.json, err, row.err)
				}
				continue
			}
			value := reflect.ValueOf(config).FieldByIndex(field.Index)
			if value.Kind() == reflect.Pointer && !value.IsNil() {
				value = value.Elem()
			}
			if got := fmt.Sprint(value); err != nil || got != row.want {
				t.Errorf("%s %s over %s: %q, %v, want %q", name, row.json, row.class, got, err, row.want)
			}
		}
	}
}
