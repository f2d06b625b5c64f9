package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// A reader finds every page from the index.
func TestIndexHasEveryPage(t *testing.T) {
	index := files.Read(t, root+"/docs/README.md")
	paths, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// The README is read in a few minutes.
func TestReadmeIsShort(t *testing.T) {
	text := files.Read(t, root+"/README.md")
	if lines, words := strings.Count(text, "\n"), len(strings.Fields(text)); lines > 150 || words > 1100 {
		t.Errorf("README.md has %d lines and %d words, allowed are 150 and 1,100", lines, words)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|<img src="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fences  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

func TestLinksLeadToWhatExists(t *testing.T) {
	found := 0
	all := pages(t)
	for page, text := range all {
		for _, match := range link.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			target := match[1] + match[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			name, anchor, _ := strings.Cut(target, "#")
			path := page
			if name != "" {
				path = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
			} else if anchor != "" && !anchors(files.Read(t, filepath.Join(root, path)))[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, target, path)
			}
		}
	}
	if found < 300 {
		t.Errorf("found only %d links in %d pages", found, len(all))
	}
}

// anchors returns the anchors that GitHub makes of headings.
func anchors(text string) map[string]bool {
	list := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		var anchor strings.Builder
		for _, r := range strings.ToLower(strings.TrimSpace(match[1])) {
			switch {
			case r == ' ':
				anchor.WriteByte('-')
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				anchor.WriteRune(r)
			}
		}
		list[anchor.String()] = true
	}
	return list
}
