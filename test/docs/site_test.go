package docs

import (
	"regexp"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// Each reader of the source takes the packages of the site from the registry that npm is set up
// for: the checksums say that they are the same.
func TestPackagesOfTheSiteAreOfAnyRegistry(t *testing.T) {
	lock := files.Read(t, root+"/deployments/site/package-lock.json")
	if found := regexp.MustCompile(`"resolved"`).FindAllString(lock, -1); len(found) > 0 {
		t.Errorf("%d packages have the address of a registry: set omit-lockfile-registry-resolved", len(found))
	}
	packages := regexp.MustCompile(`"node_modules/[^"]+": \{\n\s+"version": "[^"]+",\n(\s+"integrity": "sha512-)?`).FindAllStringSubmatch(lock, -1)
	if len(packages) < 100 {
		t.Errorf("found only %d packages", len(packages))
	}
	for _, match := range packages {
		if match[1] == "" {
			t.Errorf("no checksum after %s", match[0])
		}
	}
}
