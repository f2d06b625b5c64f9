package canvas

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Size of a character of the drawing, in pixels of the picture. In fixed-width fonts, a
// character is about 0.6 times as wide as the font size, which is 13.
const (
	CharWidth  = 8
	charHeight = 20
	baseline   = 14 // below the top of a row
	inset      = 2  // from the edge of a row to its content
	margin     = 12 // around the drawing
)

// Caption is the description of a picture for people who cannot see it.
type Caption struct {
	ID          string // prefix of the ids in the picture
	Title       string
	Description string
}

// IsBroad reports whether the picture of a drawing is at least as wide as it is high.
func IsBroad(b Block) bool { return b.W*CharWidth >= b.H*charHeight }

// WriteSVG writes a laid-out drawing as a picture, in the light or dark colours that
// its reader prefers. The picture needs no other files and runs no scripts.
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

// mark writes one mark. A frame starts at the upper edge of its first row, which has
// the title. It ends in the middle of its last row, to leave some room below it.
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
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder never fails
	return b.String()
}

// ClassName returns the class of a look in the style sheets.
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
