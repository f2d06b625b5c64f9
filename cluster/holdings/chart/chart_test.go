package chart

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// shown are clusters of all kinds, and each node of the showcase.
func shown(t *testing.T) map[string]holdings.Cluster {
	t.Helper()
	showcase := holdings.Of(&occupied.Showcase(t).Snapshot)
	large := holdings.Of(&occupied.Large(t, 30, 8).Snapshot)
	clusters := map[string]holdings.Cluster{
		"none": holdings.Of(&occupied.New(t).Snapshot), "showcase": showcase, "large": large, "divided": holdings.Of(&occupied.Divided(t).Snapshot),
	}
	for _, node := range showcase.Nodes {
		only, found := showcase.Only(node.Name)
		if !found {
			t.Fatalf("there is no node %s", node.Name)
		}
		clusters[node.Name] = only
	}
	return clusters
}

func TestGolden(t *testing.T) {
	clusters := shown(t)
	for name, c := range clusters {
		for ending, text := range map[string]string{"txt": text(t, c, draw.TextOptions{}), "svg": picture(t, c)} {
			files.Golden(t, filepath.Join("testdata", name+"."+ending), text)
		}
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) != 2*len(clusters) {
		t.Errorf("testdata has %d files, %v; want 2 for each of %d clusters", len(files), err, len(clusters))
	}
}

func text(t *testing.T, c holdings.Cluster, o draw.TextOptions) string {
	t.Helper()
	return files.Render(t, func(w io.Writer) error { return Text(w, c, o) })
}

func picture(t *testing.T, c holdings.Cluster) string {
	t.Helper()
	return files.Render(t, func(w io.Writer) error { return SVG(w, c) })
}

func TestTextFitsItsWidth(t *testing.T) {
	for name, c := range shown(t) {
		for _, width := range []int{draw.MinWidth, 60, draw.DefaultWidth, 133, 300} {
			for line := range strings.Lines(text(t, c, draw.TextOptions{Width: width})) {
				if line = strings.TrimSuffix(line, "\n"); len(line) > width || strings.TrimRight(line, " ") != line {
					t.Errorf("%s, width %d: line %q", name, width, line)
				}
			}
		}
	}
}

func TestColourOnlyAddsSequences(t *testing.T) {
	sequence := regexp.MustCompile("\x1b\\[[0-9]*m")
	for name, c := range shown(t) {
		coloured := text(t, c, draw.TextOptions{Colour: true})
		if got, want := sequence.ReplaceAllString(coloured, ""), text(t, c, draw.TextOptions{}); got != want {
			t.Errorf("%s: without sequences it is\n%s, want\n%s", name, got, want)
		}
		if name == "worker-1" && !strings.Contains(coloured, "\x1b[34mAA\x1b[0m\x1b[2m..") {
			t.Errorf("%s: claim A has no colour of its own in\n%q", name, coloured)
		}
	}
}

// A PCI function has its names if the database of the driver had both.
func TestFunctionsHaveTheirNames(t *testing.T) {
	attributes := func(domain, vendor, product string) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
		list := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
		for name, value := range map[string]string{"kind": "nic", "vendorID": "8086", "deviceID": "1592", "vendor": vendor, "product": product} {
			list[resourceapi.QualifiedName(domain+name)] = resourceapi.DeviceAttribute{StringValue: &value}
		}
		return list
	}
	c := occupied.New(t)
	c.AddNode("n")
	c.AddSlice("n", driver.Name,
		resourceapi.Device{Name: "nic-known", Attributes: attributes("", "Intel Corporation", "E810\x1b[2J-C")},
		resourceapi.Device{Name: "nic-of-older", Attributes: attributes("dra.numa/", "Intel Corporation", "E810-C")},
		resourceapi.Device{Name: "nic-product", Attributes: attributes("", "Intel Corporation", "1592")},
		resourceapi.Device{Name: "nic-vendor", Attributes: attributes("", "8086", "1592")},
	)
	c.AddSlice("n", "nic.example.com", resourceapi.Device{Name: "nic-other", Attributes: attributes("", "Intel Corporation", "E810-C")})
	got := text(t, holdings.Of(&c.Snapshot), draw.TextOptions{Width: 100})
	files.Contains(t, got,
		". nic-known of dra.numa, Intel Corporation E810?[2J-C ", ". nic-of-older of dra.numa, Intel Corporation E810-C ", ". nic-product of dra.numa ", ". nic-vendor of dra.numa ", ". nic-other of nic.example.com ",
	)
}

// A claim may say that it holds more CPUs than any machine has.
func TestHeldCPUsAreDrawnInBounds(t *testing.T) {
	c := occupied.New(t)
	c.AddNode("n")
	c.AddSlice("n", driver.Name, resourceapi.Device{Name: "numa-0"})
	c.AddClaim("d/a", occupied.Share{Node: "n", Device: "numa-0", Amounts: "cpu=9223372036854775807"})
	c.AddClaim("d/b", occupied.Share{Node: "n", Device: "numa-0", Amounts: "cpu=2147483647"})
	held := holdings.Of(&c.Snapshot)
	if drawn := len(text(t, held, draw.TextOptions{})) + len(picture(t, held)); drawn > 1<<20 {
		t.Errorf("drawn with %d bytes", drawn)
	}
}
