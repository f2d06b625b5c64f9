package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/dra-driver-numa/dra-driver-numa/deployments/archive"
)

// manifestName is the name of krew's manifest: krew wants that of the plugin.
const manifestName = "numa.yaml"

// writeManifest fills in a template of krew-release-bot for the archives in a folder, and
// writes there what krew reads. As krew-release-bot does, it knows two things: {{.TagName}},
// and addURIAndSha for what is published at an address.
func writeManifest(folder, file, version string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	uriAndSum := func(uri, tag string) (string, error) {
		uri = strings.ReplaceAll(uri, "{{ .TagName }}", tag)
		content, err := os.ReadFile(filepath.Join(folder, path.Base(uri)))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("uri: %s\n    sha256: %x", uri, sha256.Sum256(content)), nil
	}
	manifest, err := template.New(file).Funcs(template.FuncMap{"addURIAndSha": uriAndSum}).Parse(string(text))
	if err != nil {
		return err
	}
	var filled strings.Builder
	if err := manifest.Execute(&filled, map[string]string{"TagName": version}); err != nil {
		return err
	}
	return archive.Replace(filepath.Join(folder, manifestName), []byte(filled.String()))
}
