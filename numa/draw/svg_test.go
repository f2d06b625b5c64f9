package draw

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// element is one rect or text of a picture.
type element struct {
	XMLName       xml.Name
	Class         string `xml:"class,attr"`
	X             int    `xml:"x,attr"`
	Y             int    `xml:"y,attr"`
	Width, Height int
	W             int    `xml:"width,attr"`
	H             int    `xml:"height,attr"`
	Text          string `xml:",chardata"`
}

type picturefile struct {
	XMLName  xml.Name  `xml:"http://www.w3.org/2000/svg svg"`
	ViewBox  string    `xml:"viewBox,attr"`
	Width    int       `xml:"width,attr"`
	Height   int       `xml:"height,attr"`
	Title    string    `xml:"title"`
	Desc     string    `xml:"desc"`
	Style    string    `xml:"style"`
	Elements []element `xml:",any"`
}

func TestPictureIsCompleteAndWellFormed(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		text := picture(t, machine)
		for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		var svg picturefile
		if err := xml.Unmarshal([]byte(text), &svg); err != nil {
			t.Fatal(err)
		}
		if want := "0 0 " + strconv.Itoa(svg.Width) + " " + strconv.Itoa(svg.Height); svg.ViewBox != want || svg.Title == "" || svg.Desc == "" {
			t.Errorf("viewBox %q, want %q; title %q; desc %q", svg.ViewBox, want, svg.Title, svg.Desc)
		}
		if !strings.Contains(svg.Style, "prefers-color-scheme: dark") || strings.Contains(text, "<script") || strings.Contains(text, "href") {
			t.Errorf("style %q", svg.Style)
		}
		shown := map[string]bool{}
		var cpus [][]string
		for _, e := range svg.Elements {
			if e.XMLName.Local != "text" && e.XMLName.Local != "rect" {
				t.Errorf("unexpected <%s>", e.XMLName.Local)
			}
			if right := e.X + max(e.W, len(e.Text)*canvas.CharWidth); right > svg.Width || e.Y+e.H > svg.Height || e.X < 0 || e.Y < 0 {
				t.Errorf("%+v is outside of %s", e, svg.ViewBox)
			}
			if !strings.Contains(canvas.Style, "."+e.Class+" ") && e.Class != "plain" {
				t.Errorf("class %q has no style", e.Class)
			}
			switch e.Class {
			case "cpu", "isolated":
				cpus = append(cpus, []string{"", strings.ReplaceAll(e.Text, ",", " ")})
			}
			for word := range strings.FieldsSeq(e.Text) {
				shown[word] = true
			}
			shown[e.Text] = true
		}
		if got, want := cpusIn(t, cpus), inZones(machine); !want.IsSubsetOf(got) {
			t.Errorf("drawn are the CPUs %s, the zones have %s", got, want)
		}
		for _, address := range named(machine) {
			if !shown[address] {
				t.Errorf("device %s is not drawn", address)
			}
		}
		for _, zone := range machine.Zones {
			if !shown[(&scene{machine: machine}).zoneTitle(&zone)] {
				t.Errorf("node %d is not drawn", zone.ID)
			}
		}
	})
}
