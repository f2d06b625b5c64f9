package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deployments/archive"
)

// versionFormat is that of a release: a tag of Git is v and a version of SemVer, which a
// chart has without the v.
var versionFormat = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// registryFormat is a host, with or without a port, and a path.
var registryFormat = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`)

// writeChart writes the chart of a folder with the version of a release, as a package that
// Helm installs. Its name is NAME-VERSION.tgz, as helm package chooses it. The image is that of
// the registry, if there is one.
func writeChart(out, chart, version, registry string) error {
	if !versionFormat.MatchString(version) {
		return fmt.Errorf("version %q: want vMAJOR.MINOR.PATCH, such as v0.1.0", version)
	}
	if registry != "" && !registryFormat.MatchString(registry) {
		return fmt.Errorf("registry %q: want HOST[:PORT][/PATH], such as registry.example/team", registry)
	}
	files, err := chartFiles(os.DirFS(chart), filepath.Base(chart), version, registry)
	if err != nil {
		return fmt.Errorf("chart %s: %w", chart, err)
	}
	content, err := archive.Compress(files)
	if err != nil {
		return err
	}
	return archive.Replace(filepath.Join(out, filepath.Base(chart)+"-"+version[1:]+".tgz"), content)
}

// chartFiles returns the files of a chart, below a folder of its name.
func chartFiles(chart fs.FS, name, version, registry string) (files []archive.File, err error) {
	err = fs.WalkDir(chart, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(chart, file)
		if err != nil {
			return err
		}
		switch {
		case file == "Chart.yaml":
			content, err = stamp(content, version)
		case (file == "values.yaml" || file == "README.md") && registry != "":
			content, err = publish(content, registry, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		files = append(files, archive.File{Name: path.Join(name, file), Mode: 0o644, Content: content})
		return nil
	})
	return files, err
}

// stamp gives a Chart.yaml the version of a release. The chart's own is without the v. That of
// the image is the tag of Git; the chart takes it for the image's tag.
func stamp(text []byte, version string) ([]byte, error) {
	stamped := string(text)
	for key, value := range map[string]string{"version": version[1:], "appVersion": version} {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if found := len(line.FindAllString(stamped, -1)); found != 1 {
			return nil, fmt.Errorf("%d lines with %s:, want 1", found, key)
		}
		stamped = line.ReplaceAllLiteralString(stamped, key+": "+value)
	}
	return []byte(strings.TrimSpace(stamped) + "\n"), nil
}

// publish replaces what values and README of a chart have for an image of this machine and for a
// registry that nobody has chosen.
func publish(text []byte, registry, name string) ([]byte, error) {
	const here, placeholder = "localhost/", "oci://REGISTRY/"
	if !strings.Contains(string(text), here+name) {
		return nil, fmt.Errorf("no image %s%s, want one", here, name)
	}
	replacer := strings.NewReplacer(here+name, registry+"/"+name, placeholder, "oci://"+registry+"/")
	return []byte(replacer.Replace(string(text))), nil
}
