package deviceclasses

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const page = "../docs/configuration.md"

// reference is what the sources say of the types.
type reference struct {
	structs map[string]*ast.StructType
	values  map[string]string // of constants by name, unquoted
	allowed map[string][]*ast.ValueSpec
	byField map[string]string // the comment above the constants of a field
}

// values of a field are constants under such a comment.
var ofField = regexp.MustCompile(`^Values of (\w+)\.(\w+)[.;]`)

func readReference(t *testing.T) reference {
	t.Helper()
	r := reference{map[string]*ast.StructType{}, map[string]string{}, map[string][]*ast.ValueSpec{}, map[string]string{}}
	for _, name := range []string{"zoneconfig.go", "deviceconfig.go", "nodeconfig.go", "hugepagereservation.go", "exclusion.go", "selection.go", "cachepools.go", "cachegroup.go", "cacheconfig.go", "performanceconfig.go", "nodeperformance.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if of, ok := declaration.(*ast.GenDecl); ok {
				r.add(of)
			}
		}
	}
	return r
}

func (r reference) add(declaration *ast.GenDecl) {
	about := ofField.FindStringSubmatch(declaration.Doc.Text())
	for _, spec := range declaration.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if of, ok := spec.Type.(*ast.StructType); ok {
				r.structs[spec.Name.Name] = of
			}
		case *ast.ValueSpec:
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				r.values[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
			if about != nil {
				r.allowed[about[2]] = append(r.allowed[about[2]], spec)
				r.byField[about[2]] = declaration.Doc.Text()
			}
		}
	}
}

// field is a row of a table.
type field struct{ name, meaning, example string }

// fields are those of a type and of the types in it.
func (r reference) fields(t *testing.T, of string) (all []field) {
	t.Helper()
	for _, member := range r.structs[of].Fields.List {
		if len(member.Names) == 0 {
			if inner, ok := member.Type.(*ast.Ident); ok && of != "NodeProfile" {
				all = append(all, r.fields(t, inner.Name)...)
			}
			continue
		}
		tag, _ := strconv.Unquote(member.Tag.Value)
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		text, example, found := strings.Cut(member.Doc.Text(), "\n\n\t")
		if !found {
			t.Errorf("%s of %s has no example", name, of)
		}
		meaning := strings.Join(strings.Fields(text), " ")
		meaning = "`" + name + "`" + strings.TrimPrefix(meaning, member.Names[0].Name)
		all = append(all, field{name, meaning + r.choices(member.Names[0].Name), strings.TrimSpace(example)})
	}
	return all
}

// choices lists the values that a field may have, the default first.
func (r reference) choices(field string) string {
	var first, others string
	for _, spec := range r.allowed[field] {
		name := spec.Names[0].Name
		one := fmt.Sprintf("<br>`%s`: %s", r.values[name], strings.TrimSpace(spec.Comment.Text()))
		if strings.Contains(r.byField[field], "The default is "+name+".") {
			first = one + " (default)"
		} else {
			others += one
		}
	}
	return first + others
}

func (r reference) table(t *testing.T, of string) string {
	var table strings.Builder
	table.WriteString("| meaning | example |\n|---|---|\n")
	for _, row := range r.fields(t, of) {
		fmt.Fprintf(&table, "| %s | `%s` |\n", strings.ReplaceAll(row.meaning, "|", "\\|"), row.example)
	}
	return table.String()
}

// TestReferenceIsOfTheTypes holds the page to the comments of the types.
func TestReferenceIsOfTheTypes(t *testing.T) {
	r, want := readReference(t), files.Read(t, page)
	for _, of := range []string{"ZoneConfig", "DeviceConfig", "NodeConfig", "HugepageReservation", "MemoryReservation", "Exclusion", "DeviceSelection", "NodeProfile", "CacheConfig", "PerformanceConfig", "NodePerformance", "CachePools", "CacheWays", "CacheGroup", "InfraPool", "SharedPool", "GuaranteedPool", "BestEffortPool"} {
		head, rest, found := strings.Cut(want, "<!-- fields of "+of+" -->\n")
		_, tail, closed := strings.Cut(rest, "<!-- end of fields -->\n")
		if !found || !closed {
			t.Fatalf("%s has no place for the fields of %s", page, of)
		}
		want = head + "<!-- fields of " + of + " -->\n" + r.table(t, of) + "<!-- end of fields -->\n" + tail
	}
	files.Golden(t, page, want)
}

// TestExampleOfEveryField decodes them: each sets its field, and only that.
func TestExampleOfEveryField(t *testing.T) {
	r := readReference(t)
	for of, row := range map[string]struct {
		head   string
		decode func(text string) (any, error)
	}{
		"ZoneConfig":   {"{apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, %s}", decodeOver[ZoneConfig]},
		"DeviceConfig": {"{apiVersion: dra.numa/v1alpha1, kind: DeviceConfig, %s}", decodeOver[DeviceConfig]},
		"NodeConfig":   {"apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n%s", func(text string) (any, error) { return DecodeNodeConfig([]byte(text)) }},
		"DeviceSelection": {nodeHead + "devices: {%s}", func(text string) (any, error) {
			config, err := DecodeNodeConfig([]byte(text))
			return *config.Devices, err
		}},
		"HugepageReservation": {"{%s}", decodeAlone[HugepageReservation]},
		"MemoryReservation":   {"{%s}", decodeAlone[MemoryReservation]},
		"Exclusion":           {"{%s}", decodeAlone[Exclusion]},
		"NodePerformance":     {"{%s}", decodeAlone[NodePerformance]},
		"CachePools":          {"{%s}", decodeAlone[CachePools]},
		"CacheWays":           {"{%s}", decodeAlone[CacheWays]},
		"CacheGroup":          {"{%s}", decodeAlone[CacheGroup]},
		"InfraPool":           {"{%s}", decodeAlone[InfraPool]},
		"GuaranteedPool":      {"{%s}", decodeAlone[GuaranteedPool]},
		"BestEffortPool":      {"{%s}", decodeAlone[BestEffortPool]},
		"SharedPool":          {"{%s}", decodeAlone[SharedPool]},
		"CacheConfig":         {"{apiVersion: dra.numa/v1alpha1, kind: CacheConfig, %s}", decodeOver[CacheConfig]},
		"PerformanceConfig":   {"{apiVersion: dra.numa/v1alpha1, kind: PerformanceConfig, %s}", decodeOver[PerformanceConfig]},
		"NodeProfile": {nodeHead + "profiles:\n- %s", func(text string) (any, error) {
			config, err := DecodeNodeConfig([]byte(text))
			return config.Profiles[0], err
		}},
	} {
		for _, field := range r.fields(t, of) {
			config, err := row.decode(fmt.Sprintf(row.head, field.example))
			if err != nil {
				t.Errorf("%s of %s: %s: %v", field.name, of, field.example, err)
				continue
			}
			for _, member := range reflect.VisibleFields(reflect.TypeOf(config)) {
				name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
				if name == "" || name == "kind" || name == "apiVersion" {
					continue
				}
				if isSet := !reflect.ValueOf(config).FieldByIndex(member.Index).IsZero(); isSet != (name == field.name) {
					t.Errorf("%s of %s: the example %s sets %s: %t", field.name, of, field.example, name, isSet)
				}
			}
		}
	}
}

// decodeOver reads a configuration of a request.
func decodeOver[C interface{ DecodeOver(raw []byte) (C, error) }](text string) (any, error) {
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var zero C
	return zero.DecodeOver(document)
}

// decodeAlone reads a part of a configuration that needs several fields.
func decodeAlone[C any](text string) (any, error) {
	var one C
	err := yaml.UnmarshalStrict([]byte(text), &one)
	return one, err
}

// TestExamplesOfThePageAreDecoded reads them as the API server and the driver do.
func TestExamplesOfThePageAreDecoded(t *testing.T) {
	seen := map[string]bool{}
	for _, part := range strings.Split(files.Read(t, page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		document := []byte(text)
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		seen[meta.Kind] = true
		if err := decodeExample(meta.Kind, document); err != nil {
			t.Errorf("%v in\n%s", err, document)
		}
	}
	for _, kind := range []string{"ResourceClaimTemplate", "DeviceClass", "NodeConfig"} {
		if !seen[kind] {
			t.Errorf("no example is a %s", kind)
		}
	}
}

func decodeExample(kind string, document []byte) error {
	var parameters []byte
	switch kind {
	case NodeConfigKind:
		_, err := DecodeNodeConfig(document)
		return err
	case "DeviceClass":
		var class resourceapi.DeviceClass
		if err := yaml.UnmarshalStrict(document, &class); err != nil {
			return err
		}
		parameters = class.Spec.Config[0].Opaque.Parameters.Raw
	case "ResourceClaimTemplate":
		var template resourceapi.ResourceClaimTemplate
		if err := yaml.UnmarshalStrict(document, &template); err != nil {
			return err
		}
		parameters = template.Spec.Spec.Devices.Config[0].Opaque.Parameters.Raw
	default:
		return fmt.Errorf("kind %q is no example", kind)
	}
	_, err := RequestConfig{}.DecodeOver(parameters)
	return err
}
