package canvas

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A character of the drawing in pixels of the picture. The advance of fixed-width fonts is near 0.6 of their size,
// which is 13.
const (
	CharWidth  = 8
	charHeight = 20
	baseline   = 14 // below the top of a row
	inset      = 2  // from the edge of a row to what is in it
	margin     = 12 // around the drawing
)

// Caption is what a picture says of itself to those who cannot see it.
type Caption struct {
	ID          string // the prefix of the picture's ids
	Title       string
	Description string
}

// IsBroad reports whether the picture of a drawing is at least as wide as high.
func IsBroad(b Block) bool { return b.W*CharWidth >= b.H*charHeight }

// WriteSVG writes a laid-out drawing as a picture, with frames for lines, in the light or dark colours that its reader
// prefers. It is complete in itself and runs no script.
func WriteSVG(w io.Writer, b Block, c Caption) error {
	out := &svgWriter{Writer: bufio.NewWriter(w)}
	width, height := b.W*CharWidth+2*margin, b.H*charHeight+2*margin
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-labelledby="%s-title %s-desc">`+"\n", width, height, width, height, c.ID, c.ID)
	out.printf("<title id=\"%s-title\">%s</title>\n", c.ID, escaped(c.Title))
	out.printf("<desc id=\"%s-desc\">%s</desc>\n", c.ID, escaped(Printable(c.Description)))
	styles := Style
	if slices.ContainsFunc(b.Marks, func(m Mark) bool { return m.Shape == Bar }) {
		styles += BarStyle
	}
	out.printf("<style>\n%s</style>\n", styles)
	out.printf(`<rect class="page" width="%d" height="%d" rx="8"/>`+"\n", width, height)
	for _, m := range b.Marks {
		out.mark(m)
	}
	out.printf("</svg>\n")
	return out.Flush() // the first error of all writes
}

type svgWriter struct{ *bufio.Writer }

func (out *svgWriter) printf(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// mark writes one mark. Frames go from the upper edge of their first row, which holds the title, to the middle of their
// last one, which leaves room below them.
func (out *svgWriter) mark(m Mark) {
	x, y := margin+m.X*CharWidth, margin+m.Y*charHeight
	switch m.Shape {
	case Frame:
		out.rect(ClassName(m.Look), 6, x+CharWidth/2, y+inset, (m.W-1)*CharWidth, (m.H-1)*charHeight+charHeight/2-inset)
	case Chip:
		class := "core"
		if m.Look == IsolatedText {
			class = "core-isolated"
		}
		out.rect(class, 3, x-1, y+inset, m.W*CharWidth+2, charHeight-2*inset)
	case Bar:
		out.rect(ClassName(m.Look), 2, x, y+inset, m.W*CharWidth, charHeight-2*inset)
		if m.Look != Free {
			out.text("sign", x+(m.W-1)*CharWidth/2, y+baseline, m.Text)
		}
	case Label:
		text := strings.TrimLeft(m.Text, " ")
		out.text(ClassName(m.Look), x+(len(m.Text)-len(text))*CharWidth, y+baseline, text)
	case Title:
		out.text(ClassName(m.Look), x-CharWidth, y+baseline+inset, m.Text)
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

// ClassName is the class of a look in the style sheets.
func ClassName(l Look) string {
	switch l {
	case Heading:
		return "heading"
	case SocketFrame:
		return "node"
	case MemoryFrame:
		return "node-memory"
	case CacheFrame:
		return "cache"
	case OtherFrame:
		return "elsewhere"
	case CPUText:
		return "cpu"
	case IsolatedText:
		return "isolated"
	case MemoryText:
		return "memory"
	case DeviceText:
		return "device"
	case Muted:
		return "muted"
	case Free:
		return "free"
	case Blocked:
		return "blocked"
	}
	if l >= firstHue {
		return fmt.Sprintf("hue-%d", l-firstHue)
	}
	return "plain"
}
