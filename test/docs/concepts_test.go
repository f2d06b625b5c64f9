package docs

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The pictures of docs/concepts.md have text for those who do not see them.
func TestPicturesOfConceptsHaveText(t *testing.T) {
	page := files.Read(t, root+"/docs/concepts.md")
	for _, name := range []string{"problem.svg", "claim.svg", "choose.svg"} {
		if !strings.Contains(page, "]("+name+")") {
			t.Errorf("docs/concepts.md does not show %s", name)
		}
		var picture struct {
			Title string `xml:"title"`
			Desc  string `xml:"desc"`
		}
		if err := xml.Unmarshal([]byte(files.Read(t, root+"/docs/"+name)), &picture); err != nil || picture.Title == "" || picture.Desc == "" {
			t.Errorf("%s: title %q, desc %q, %v", name, picture.Title, picture.Desc, err)
		}
	}
}
