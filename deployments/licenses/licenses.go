// Package licenses collects the licences of the modules that Go's linker has put into programs,
// for those who get the programs only. Which modules these are is what the programs say; the
// texts are those of Go's module cache. It does not judge whether licences go together.
package licenses

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// Name is that of the file with the texts, in an archive and in an image.
const Name = "THIRD_PARTY_LICENSES"

// Of returns the licences of all modules in the programs, and that of Go, whose runtime and
// library are in each of them. The same programs give the same bytes. A module without a licence
// is an error.
func Of(ctx context.Context, programs ...string) ([]byte, error) {
	sums, releases := map[module]string{}, map[string]bool{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("read build information of %s: %w", program, err)
		}
		release, _, _ := strings.Cut(info.GoVersion, " ") // what follows are experiments
		releases[release] = true
		for _, required := range info.Deps {
			m := linked(required)
			sums[module{m.Path, m.Version}] = m.Sum
		}
	}
	var c collection
	for _, release := range slices.Sorted(maps.Keys(releases)) {
		if err := c.addGo(ctx, release); err != nil {
			return nil, fmt.Errorf("licence of %s: %w", release, err)
		}
	}
	folders, err := download(ctx, sums)
	if err != nil {
		return nil, err
	}
	for _, m := range slices.SortedFunc(maps.Keys(folders), module.compare) {
		if err := c.add(m.String(), os.DirFS(folders[m])); err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m, err)
		}
	}
	return c.render(), nil
}

// linked returns the module that is in a program in place of the required one.
func linked(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

type module struct{ path, version string }

func (m module) String() string { return m.path + "@" + m.version }

func (m module) compare(other module) int { return strings.Compare(m.String(), other.String()) }

// download returns the folders of modules in the module cache. A folder with another sum than the
// linker has seen is an error.
func download(ctx context.Context, sums map[module]string) (map[module]string, error) {
	folders := map[module]string{}
	if len(sums) == 0 {
		return folders, nil
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range slices.SortedFunc(maps.Keys(sums), module.compare) {
		args = append(args, m.String())
	}
	output, err := ask(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var got struct{ Path, Version, Dir, Sum string }
		if err := decoder.Decode(&got); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go mod download says: %w", err)
		}
		m := module{got.Path, got.Version}
		if sums[m] != got.Sum {
			return nil, fmt.Errorf("module %s in the module cache has the sum %q, and in the program %q", m, got.Sum, sums[m])
		}
		folders[m] = got.Dir
	}
}

// ask runs the go command outside of any module.
func ask(ctx context.Context, env []string, args ...string) ([]byte, error) {
	var output, problems bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = os.TempDir(), append(append(os.Environ(), "GOFLAGS=", "GOWORK=off"), env...)
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("run go %s: %w\n%s%s", args[0], err, &output, &problems)
	}
	return output.Bytes(), nil
}

// license is the name of a file with a licence, or with what a licence wants to be passed on.
var license = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|authors)`)

// collection has licences in the order in which they were added.
type collection struct {
	texts []string
	of    map[string][]string // files that have a text
}

// addGo adds the licence of a release of Go.
func (c *collection) addGo(ctx context.Context, release string) error {
	root, err := ask(ctx, []string{"GOTOOLCHAIN=" + release}, "env", "GOROOT")
	if err != nil {
		return err
	}
	// Only these two are of the library: other folders are tools with tests.
	for _, name := range []string{"LICENSE", "PATENTS"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), name))
		if err != nil {
			return err
		}
		c.addText("Go "+release+": "+name, text)
	}
	return nil
}

// add adds all licences of a module: folders with code of others have their own.
func (c *collection) add(name string, folder fs.FS) error {
	found := false
	err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir() || !license.MatchString(entry.Name()) || strings.HasSuffix(path, ".go"):
			return nil
		}
		found = true
		text, err := fs.ReadFile(folder, path)
		c.addText(name+": "+path, text)
		return err
	})
	if err == nil && !found {
		return errors.New("no file of the module is one")
	}
	return err
}

func (c *collection) addText(of string, text []byte) {
	trimmed := strings.TrimSpace(string(text))
	if c.of == nil {
		c.of = map[string][]string{}
	}
	if c.of[trimmed] == nil {
		c.texts = append(c.texts, trimmed)
	}
	c.of[trimmed] = append(c.of[trimmed], of)
}

// render returns each text once, below the names of what it is for.
func (c *collection) render() []byte {
	var page bytes.Buffer
	page.WriteString("The programs contain what is named here, under the licence that follows the names.\n")
	line := strings.Repeat("=", 80) + "\n"
	for _, text := range c.texts {
		fmt.Fprintf(&page, "\n%s%s\n%s\n%s\n", line, strings.Join(c.of[text], "\n"), line, text)
	}
	return page.Bytes()
}
