// Package vocabulary holds the shipped code to one spelling: a name that appears in
// ResourceSlices, claims or taints is typed in package deviceclasses and imported by
// everybody else.
package vocabulary

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// owners may type the words: the files of the vocabulary, and the packages that must not
// import it.
var owners = []string{
	"deviceclasses/vocabulary.go", "deviceclasses/fault.go", "deviceclasses/decode.go", "deviceclasses/nodeconfig.go", "deviceclasses/zoneconfig.go",
	"deviceclasses/cacheconfig.go", "deviceclasses/cachepools.go", "deviceclasses/deviceconfig.go", "deviceclasses/selection.go",
	"deviceclasses/performanceconfig.go", "deviceclasses/nodeperformance.go", "deviceclasses/frequency.go",
	"numa/", "cdi/pin/", "cmd/numa-pin/",
}

// exceptions are words of the same letters that mean something else, by file.
var exceptions = map[string][]string{
	"cluster/diagnosis/drift/drift.go": {deviceclasses.FaultPartitionInvalid, deviceclasses.FaultNotPinned},   // names of checks
	"cluster/holdings/web/overview.go": {deviceclasses.FrequencyMin},                                          // an attribute of HTML
	"cmd/kubectl-numa/generate.go":     {string(deviceclasses.CapacityMemory)},                                // a flag
	"cmd/kubectl-numa/manifests.go":    {string(deviceclasses.CapacityMemory), string(numa.MixedCores)},       // flags
	"cmd/kubectl-numa/policy.go":       {string(deviceclasses.AttributeCoreType)},                             // a key of --policy
	"driver/reservedmemory.go":         {string(deviceclasses.CapacityMemory)},                                // in the kubelet's configuration
	"deviceclasses/manifest/level3.go": {string(deviceclasses.CapacityMemory)},                                // the name of a request
	"driver/rivals.go":                 {string(deviceclasses.CapacityCPU)},                                   // a capacity of other drivers
	"kubeletplugin/metrics/family.go":  {string(deviceclasses.CapacityCPU)},                                   // a label
	"kubeletplugin/rivals.go":          {string(deviceclasses.CapacityMemory)},                                // a word of its file
	"cluster/migration/kubelet.go":     {deviceclasses.ZoneOrderStatic},                                       // a policy of the kubelet
	"cluster/migration/openshift.go":   {deviceclasses.ZoneOrderStatic, string(deviceclasses.CapacityMemory)}, // the same, and a field
	"cluster/migration/fields.go":      {deviceclasses.ZoneOrderStatic},                                       // the same
	"cluster/migration/table.go":       {deviceclasses.ZoneOrderStatic},                                       // the same
	"cluster/migration/migration.go":   {deviceclasses.FaultGone},                                             // an outcome
	"driver/ledger/cache.go": { // fields of the checkpoint
		string(deviceclasses.CapacityBandwidthPercent), string(deviceclasses.CapacityBandwidthMBps),
	},
	"deviceclasses/translate/translate.go": {deviceclasses.ZoneByNUMA}, // the name of a claim
}

func TestNoWordIsTypedTwice(t *testing.T) {
	words := words(t)
	eachFile(t, owners, func(at func(ast.Node) string, file *ast.File, path string) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err == nil && slices.Contains(words, text) && !slices.Contains(exceptions[path], text) {
				t.Errorf("%s: %q: import it from package deviceclasses", at(n), text)
			}
			return true
		})
	})
}

// read finds the attributes that a part of a CEL expression reads.
var read = regexp.MustCompile(`(?:attributes\[[^]]*\]|%s|^)\.\??(\w+)|"(\w+)" in (?:device|%s)`)

func TestNoAttributeIsTypedInAnExpression(t *testing.T) {
	eachFile(t, nil, func(at func(ast.Node) string, file *ast.File, _ string) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			for _, name := range read.FindAllStringSubmatch(text, -1) {
				if slices.ContainsFunc(deviceclasses.Attributes(), func(row deviceclasses.AttributeRow) bool {
					return strings.TrimPrefix(string(row.Name), "resource.kubernetes.io/") == name[1]+name[2]
				}) {
					t.Errorf("%s: %q reads %s: use deviceclasses.Reading", at(n), text, name[1]+name[2])
				}
			}
			return true
		})
	})
}

// eachFile calls check for each file of shipped code, except those whose paths begin with
// one of the others. At returns where in the file a node is.
func eachFile(t *testing.T, others []string, check func(at func(ast.Node) string, file *ast.File, path string)) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"test", "bin", "tools", ".git"}, path) {
			return fs.SkipDir
		}
		isOther := func(other string) bool { return strings.HasPrefix(path, other) }
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(others, isOther) {
			return nil
		}
		source, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		check(func(n ast.Node) string { return positions.Position(n.Pos()).String() }, file, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// makers may look into the attributes of a device by a name as it is published, because
// they make the device. The attributes of package holdings are texts by full names.
var makers = []string{"driver/", "deviceclasses/probe/search.go", "cluster/holdings/attributes.go"}

// A device that is read may be of an older build, whose attributes have the driver's domain
// in their names. So readers use deviceclasses.Attribute.
func TestAttributesAreReadInBothSpellings(t *testing.T) {
	eachFile(t, makers, func(at func(ast.Node) string, file *ast.File, _ string) {
		ast.Inspect(file, func(n ast.Node) bool {
			index, ok := n.(*ast.IndexExpr)
			if !ok {
				return true
			}
			if of, ok := index.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Attributes" {
				t.Errorf("%s: read an attribute with deviceclasses.Attribute", at(n))
			}
			return true
		})
	})
}

// Users meet these words in the objects of a cluster, and look for them in the pages.
func TestEveryWordOfAnObjectIsDocumented(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents strings.Builder
	for _, page := range pages {
		documents.WriteString(files.Read(t, page))
	}
	quoted := strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(documents.String(), -1), "")
	documented := func(text string) bool {
		return regexp.MustCompile(`\b` + regexp.QuoteMeta(text)).MatchString(quoted)
	}
	for name, text := range constants(t, "../../deviceclasses") {
		for _, part := range []string{"Attribute", "Capacity", "Kind", "Fault", "Taint", "Condition", "Reason", "Scope", "Partition"} {
			if strings.HasPrefix(name, part) && !documented(text) {
				t.Errorf("no page in docs names %q, which is deviceclasses.%s", text, name)
			}
		}
	}
	for _, pool := range deviceclasses.ClaimPools() {
		if !documented(pool) {
			t.Errorf("no page in docs names the pool %q", pool)
		}
	}
}

// A fault is a name, a row of the table, and code that finds it.
func TestEveryFaultIsARowThatIsFound(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, []string{"deviceclasses/"}, func(_ func(ast.Node) string, file *ast.File, _ string) {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.SelectorExpr); ok {
				found[name.Sel.Name] = true
			}
			return true
		})
	})
	rows := map[string]bool{}
	for _, fault := range deviceclasses.Faults() {
		if rows[fault.Name] {
			t.Errorf("%s has two rows", fault.Name)
		}
		rows[fault.Name] = true
		if !fault.Taints && fault.Health == "" && fault.Condition == "" && fault.Event == "" {
			t.Errorf("%s is said nowhere", fault.Name)
		}
		if (fault.Condition == "") != (fault.Reason == "") || (fault.Condition == "") != (fault.Message == "") || (fault.EventOver == "") != (fault.NoteOver == "") || fault.Event == "" && fault.EventOver != "" {
			t.Errorf("a part of the condition or of the events of %s is missing: %+v", fault.Name, fault)
		}
	}
	for name, text := range constants(t, "../../deviceclasses") {
		if !strings.HasPrefix(name, "Fault") {
			continue
		}
		if !rows[text] {
			t.Errorf("deviceclasses.%s has no row", name)
		}
		if !found[name] {
			t.Errorf("nothing finds deviceclasses.%s", name)
		}
		delete(rows, text)
	}
	for text := range rows {
		t.Errorf("the row %q is of no constant Fault…", text)
	}
}

// Package pick knows nothing of Kubernetes, so it has words of its own.
func TestPoliciesAreSpelledAsInAZoneConfig(t *testing.T) {
	for ours, theirs := range map[string]fmt.Stringer{
		deviceclasses.CoresWhole: pick.WholeCores, deviceclasses.CoresThread: pick.SingleThreads, deviceclasses.CoresOneThreadPerCore: pick.OneThreadPerCore,
		deviceclasses.L3Any: pick.AnyL3, deviceclasses.L3Prefer: pick.PreferOneL3, deviceclasses.L3Require: pick.RequireOneL3,
		deviceclasses.PlacementPack: pick.Pack, deviceclasses.PlacementSpread: pick.Spread,
	} {
		if theirs.String() != ours {
			t.Errorf("package pick says %q, the driver %q", theirs, ours)
		}
	}
}

// The hook may import the standard library only, so it has words of its own.
func TestHookSpellsAsTheDriver(t *testing.T) {
	for ours, theirs := range map[string]string{
		deviceclasses.PartitionRoot: pin.PartitionRoot.String(), deviceclasses.PartitionIsolated: pin.PartitionIsolated.String(), deviceclasses.PartitionNone: pin.PartitionNone.String(),
		deviceclasses.ScopeContainer: string(pin.ScopeContainer), deviceclasses.ScopePod: string(pin.ScopePod),
	} {
		if ours != theirs {
			t.Errorf("the hook says %q, the driver %q", theirs, ours)
		}
	}
}
