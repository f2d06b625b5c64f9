package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// A character of the drawing in pixels of the picture. The advance of fixed-width fonts is near 0.6 of their size,
// which is 13.
const (
	charWidth  = 8
	charHeight = 20
	baseline   = 14 // below the top of a row
	inset      = 2  // from the edge of a row to what is in it
	margin     = 12 // around the drawing
)

// A picture is as many characters wide as makes it about as wide as high.
const (
	narrowest = 60
	widest    = 160
	widthStep = 20
)

// pictureRows is how high a picture may be before its cores are drawn as lists of CPUs.
const pictureRows = 120

// SVG draws the machine as a picture: what Text draws, with frames for lines, in the light or dark colours that its
// reader prefers. It is complete in itself and runs no script.
func SVG(w io.Writer, m numa.Machine) error {
	b := pictureSize(m)
	out := &svgWriter{Writer: bufio.NewWriter(w)}
	width, height := b.w*charWidth+2*margin, b.h*charHeight+2*margin
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-labelledby="numa-title numa-desc">`+"\n", width, height, width, height)
	out.printf("<title id=\"numa-title\">NUMA topology</title>\n")
	out.printf("<desc id=\"numa-desc\">%s. Each NUMA node is a box with its memory, caches, cores and PCI devices.</desc>\n",
		escaped(printable(headline(m))))
	out.printf("<style>\n%s</style>\n", style)
	out.printf(`<rect class="page" width="%d" height="%d" rx="8"/>`+"\n", width, height)
	for _, m := range b.marks {
		out.mark(m)
	}
	out.printf("</svg>\n")
	return out.Flush() // the first error of all writes
}

func pictureSize(m numa.Machine) block {
	for width := narrowest; ; width += widthStep {
		b := fit(m, width, pictureRows)
		if width >= widest || b.w*charWidth >= b.h*charHeight {
			return b
		}
	}
}

type svgWriter struct{ *bufio.Writer }

func (out *svgWriter) printf(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// mark writes one mark. Frames go from the upper edge of their first row, which holds the title, to the middle of their
// last one, which leaves room below them.
func (out *svgWriter) mark(m mark) {
	x, y := margin+m.x*charWidth, margin+m.y*charHeight
	switch m.shape {
	case frame:
		out.rect(className(m.look), 6, x+charWidth/2, y+inset, (m.w-1)*charWidth, (m.h-1)*charHeight+charHeight/2-inset)
	case chip:
		class := "core"
		if m.look == isolatedText {
			class = "core-isolated"
		}
		out.rect(class, 3, x-1, y+inset, m.w*charWidth+2, charHeight-2*inset)
	case label:
		text := strings.TrimLeft(m.text, " ")
		out.text(className(m.look), x+(len(m.text)-len(text))*charWidth, y+baseline, text)
	case title:
		out.text(className(m.look), x-charWidth, y+baseline+inset, m.text)
	}
}

func (out *svgWriter) rect(class string, radius, x, y, width, height int) {
	out.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`+"\n", class, x, y, width, height, radius)
}

func (out *svgWriter) text(class string, x, y int, text string) {
	out.printf(`<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, escaped(text))
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}

// className is the class of a look in the style sheet.
func className(l look) string {
	switch l {
	case heading:
		return "heading"
	case socketFrame:
		return "node"
	case memoryFrame:
		return "node-memory"
	case cacheFrame:
		return "cache"
	case otherFrame:
		return "elsewhere"
	case cpuText:
		return "cpu"
	case isolatedText:
		return "isolated"
	case memoryText:
		return "memory"
	case deviceText:
		return "device"
	case muted:
		return "muted"
	}
	return "plain"
}
