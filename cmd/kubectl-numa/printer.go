package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
)

// Formats of answers. Those of kubectl have the same meaning as there.
const (
	formatTable = "table" // for people
	formatWide  = "wide"  // as table, with more columns
	formatName  = "name"  // a line KIND.GROUP/NAME for each object
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatPath  = "jsonpath" // a template follows, after "="
	formatSVG   = "svg"
	formatObjs  = "objects" // objects of Kubernetes, as YAML
)

// listFormats returns the formats of a command that lists objects.
func listFormats() []string {
	return []string{formatTable, formatWide, formatName, formatJSON, formatYAML, formatPath}
}

// answerFormats returns the formats of a command that answers with a table about something
// else.
func answerFormats() []string {
	return []string{formatTable, formatWide, formatJSON, formatYAML, formatPath}
}

// printer is the value of the flag --output, and prints answers in that format.
type printer struct {
	allowed   []string // formats; the first is the default
	format    string
	template  *jsonpath.JSONPath // of the format jsonpath
	noHeaders bool
	sortBy    string // a name of a column; "" leaves rows in their order
}

func newPrinter(formats ...string) *printer { return &printer{allowed: formats, format: formats[0]} }

// String returns the format. With Set and Type, it makes printer the value of a flag.
func (p *printer) String() string { return p.format }

// Type returns the text after the flag's name in the usage.
func (p *printer) Type() string { return strings.Join(p.choices("TEMPLATE"), "|") }

// choices returns the formats as users write them.
func (p *printer) choices(template string) (list []string) {
	for _, format := range p.allowed {
		if format == formatPath {
			format += "=" + template
		}
		list = append(list, format)
	}
	return list
}

// Set rejects a format that is not allowed, and a template that makes no sense.
func (p *printer) Set(value string) error {
	format, template, hasTemplate := strings.Cut(value, "=")
	if !slices.Contains(p.allowed, format) || hasTemplate != (format == formatPath) {
		return fmt.Errorf("allowed are %s", strings.Join(p.choices("TEMPLATE"), ", "))
	}
	p.format = format
	if format != formatPath {
		return nil
	}
	if !strings.Contains(template, "{") {
		return errors.New("want a template with braces, such as jsonpath={.items[*].node}")
	}
	p.template = jsonpath.New(formatPath).AllowMissingKeys(true)
	return p.template.Parse(template)
}

// addTo adds the flag --output and, if there are tables, --no-headers.
func (p *printer) addTo(command *cobra.Command) {
	command.Flags().VarP(p, "output", "o", "output format")
	complete(command, "output", func(*cobra.Command) []string { return p.choices("") })
	if slices.Contains(p.allowed, formatWide) {
		command.Flags().BoolVar(&p.noHeaders, "no-headers", false, "print tables without their first row")
	}
}

// print writes the answer. An answer that cannot be written is a failure.
func (p *printer) print(w io.Writer, d document) error {
	text, err := d.in(p)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return d.unwritten(err)
	}
	return nil
}
