package docs

import (
	"encoding/xml"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// Only browsers know variables of CSS. In other programs, and in editors, what has one for its
// colour is black. Rules of dark mode are for browsers.
func TestPicturesHaveLiteralColours(t *testing.T) {
	paths, err := filepath.Glob(root + "/docs/*.svg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d pictures: %v", len(paths), err)
	}
	for _, path := range paths {
		text := files.Read(t, path)
		name := filepath.Base(path)
		if strings.Contains(text, "var(") {
			t.Errorf("%s has variables", name)
		}
		coloured := withoutDark(t, name, text)
		for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := decoder.Token()
			if token == nil {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if element, ok := token.(xml.StartElement); ok && !coloured(element) {
				t.Errorf("%s: a %s with the attributes %v has no colour", name, element.Name.Local, element.Attr)
			}
		}
	}
}

// withoutDark returns whether an element that is drawn has a colour in light mode: that of an
// attribute, or of a rule for its name, or for one or all of its classes.
func withoutDark(t *testing.T, name, svg string) func(xml.StartElement) bool {
	t.Helper()
	style := ""
	for _, part := range regexp.MustCompile(`(?s)<style[^>]*>(?:<!\[CDATA\[)?(.*?)(?:\]\]>)?</style>`).FindAllStringSubmatch(svg, -1) {
		style += part[1]
	}
	if style == "" {
		t.Fatalf("%s has no style", name)
	}
	style = regexp.MustCompile(`(?s)@media \(prefers-color-scheme: dark\) \{(?:[^{}]*\{[^{}]*\})*\s*\}`).ReplaceAllString(style, "")
	rules := map[string]bool{}
	for _, rule := range regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`).FindAllStringSubmatch(style, -1) {
		if regexp.MustCompile(`(?:fill|stroke): #`).MatchString(rule[2]) {
			for selector := range strings.SplitSeq(rule[1], ",") {
				rules[strings.TrimSpace(selector)] = true
			}
		}
	}
	return func(element xml.StartElement) bool {
		shape := element.Name.Local
		switch shape {
		case "rect", "circle", "path", "text", "line", "polygon", "polyline", "ellipse":
		default:
			return true
		}
		if rules[shape] {
			return true
		}
		for _, attribute := range element.Attr {
			switch attribute.Name.Local {
			case "fill", "stroke":
				return true
			case "class":
				classes := strings.Fields(attribute.Value)
				for _, class := range classes {
					if rules["."+class] || rules[shape+"."+class] {
						return true
					}
				}
				return rules["."+strings.Join(classes, ".")]
			}
		}
		return false
	}
}
