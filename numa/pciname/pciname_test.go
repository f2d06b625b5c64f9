package pciname

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const database = `# a comment
8086  Intel Corporation
	10d3  82574L Gigabit Network Connection
		103c 1785  NC112i 1-port Ethernet Server Adapter
144d  Samsung Electronics Co Ltd
	a80a  NVMe SSD Controller PM9A1/PM9A3/980PRO
C 02  Network controller
	00  Ethernet controller
`

// rootWith returns a folder with a file of this content.
func rootWith(t *testing.T, name, content string) string {
	t.Helper()
	root := t.TempDir()
	files.Write(t, filepath.Join(root, name), content)
	return root
}

func TestNamesAreThoseOfTheDatabaseBelowTheRoot(t *testing.T) {
	for _, name := range databases {
		content := database
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write([]byte(database))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			content = packed.String()
		}
		names, err := Read(rootWith(t, name, content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, row := range []struct {
			vendor, device uint16
			wantVendor     string
			wantProduct    string
		}{
			{0x8086, 0x10d3, "Intel Corporation", "82574L Gigabit Network Connection"},
			{0x144d, 0xa80a, "Samsung Electronics Co Ltd", "NVMe SSD Controller PM9A1/PM9A3/980PRO"},
			{0x8086, 0x0001, "Intel Corporation", ""},
			{0x0001, 0x10d3, "", ""},
		} {
			if vendor, product := names.Lookup(row.vendor, row.device); vendor != row.wantVendor || product != row.wantProduct {
				t.Errorf("%s: %04x:%04x is %q %q, want %q %q", name, row.vendor, row.device, vendor, product, row.wantVendor, row.wantProduct)
			}
		}
	}
}

func TestMachineWithoutADatabaseHasNoNames(t *testing.T) {
	names, err := Read(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if vendor, product := names.Lookup(0x8086, 0x10d3); vendor != "" || product != "" {
		t.Errorf("a name without a database: %q %q", vendor, product)
	}
}

func TestDamagedDatabaseIsAnErrorThatNamesIt(t *testing.T) {
	name := databases[1]
	for what, content := range map[string]string{
		"a short vendor": "80\n", "a product of no vendor": "\t10d3  82574L\n", "a class without an id": "C\n",
		"a tab alone": "8086  Intel\n\t\n", "a short product": "8086  Intel\n\t10\n",
	} {
		names, err := Read(rootWith(t, name, content))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names %s", what, err, name)
		}
		if vendor, _ := names.Lookup(0x8086, 0); vendor != "" {
			t.Errorf("%s: vendor %q", what, vendor)
		}
	}
	if _, err := Read(rootWith(t, databases[2], database)); err == nil {
		t.Error("text under a name that ends in .gz was read")
	}
}

func TestDatabaseIsAFileBelowTheRoot(t *testing.T) {
	outside := filepath.Join(rootWith(t, "pci.ids", database), "pci.ids")
	root := t.TempDir()
	path := filepath.Join(root, databases[0])
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, path); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root); err == nil {
		t.Error("a link out of the root was followed")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder as the database: %v", err)
	}
	if _, err := Read(filepath.Join(root, "missing")); err == nil {
		t.Error("a missing root was read")
	}
}
