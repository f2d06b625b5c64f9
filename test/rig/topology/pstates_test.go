package topology

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

func TestPStateTableHasTheObjectsOfEachCPU(t *testing.T) {
	const file = `{sockets: 1, dies: 1, cores: 2, threads: 1, numaNodes: [{cpus: "0-1", memory: 1Gi}], pstates: {mhz: [3000, 200], idle: 10}}`
	machine, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for cpu := range 2 {
		const register = "buffer(17) 820c0001080000ff020000000000007900"
		fmt.Fprintf(&want, `scope \_SB_.CPUS.C00%d`+"\n", cpu)
		want.WriteString("name _PCT package(" + register + " " + register + ")\n")
		want.WriteString("name _PSS package(package(3000 30000 10 10 2 2) package(200 2000 10 10 1 1))\n")
		want.WriteString("name _PPC 0\n")
		want.WriteString("name _CST package(1 package(buffer(17) 820c007f00000000000000000000007900 1 10 1000))\n")
	}
	if got := decodeTable(t, machine.PStateTable()); got != want.String() {
		t.Errorf("the table has\n%swant\n%s", got, want.String())
	}
}

func TestPStateTableWithoutIdleStateOrPStates(t *testing.T) {
	machine := shipped(t, "power")
	machine.PStates.Idle = 0
	if got := decodeTable(t, machine.PStateTable()); strings.Contains(got, "_CST") || strings.Count(got, "_PSS") != machine.CPUs() {
		t.Errorf("the table has\n%s", got)
	}
	machine.PStates = nil
	if table := machine.PStateTable(); table != nil {
		t.Errorf("a machine without P-states has a table of %d bytes", len(table))
	}
}

// The length of an object counts its own bytes: 1 up to 63, 2 up to 4095, else 3.
func TestLengthsOfObjectsReadBack(t *testing.T) {
	for _, bytes := range []int{0, 1, 62, 63, 64, 4093, 4094, 5000} {
		d := decoder{t: t, left: withLength(make([]byte, bytes))}
		if got := len(d.object()); got != bytes {
			t.Errorf("%d bytes are read back as %d", bytes, got)
		}
	}
}

// decodeTable checks the header of a table, and writes its objects as text, one per line.
func decodeTable(t *testing.T, table []byte) string {
	t.Helper()
	sum := byte(0)
	for _, b := range table {
		sum += b
	}
	if length := binary.LittleEndian.Uint32(table[4:]); string(table[:4]) != "SSDT" || int(length) != len(table) || sum != 0 {
		t.Fatalf("header %q, length %d of %d, sum of bytes %d", table[:4], length, len(table), sum)
	}
	d := decoder{t: t, left: table[36:]}
	var text strings.Builder
	for len(d.left) > 0 {
		if d.byte() != 0x10 {
			t.Fatal("not a scope")
		}
		scope := decoder{t: t, left: d.object()}
		if prefix := scope.bytes(3); prefix[0] != '\\' || prefix[1] != 0x2f || prefix[2] != 3 {
			t.Fatalf("path begins with %x", prefix)
		}
		fmt.Fprintf(&text, "scope \\%s.%s.%s\n", scope.bytes(4), scope.bytes(4), scope.bytes(4))
		for len(scope.left) > 0 {
			if scope.byte() != 0x08 {
				t.Fatal("not a name")
			}
			fmt.Fprintf(&text, "name %s %s\n", scope.bytes(4), scope.value())
		}
	}
	return text.String()
}

// decoder reads ACPI's machine language.
type decoder struct {
	t    *testing.T
	left []byte
}

func (d *decoder) bytes(n int) []byte {
	d.t.Helper()
	if n > len(d.left) {
		d.t.Fatalf("%d bytes are left, want %d", len(d.left), n)
	}
	read := d.left[:n]
	d.left = d.left[n:]
	return read
}

func (d *decoder) byte() byte { return d.bytes(1)[0] }

// object reads a length and the content that it belongs to.
func (d *decoder) object() []byte {
	before := len(d.left)
	first := d.byte()
	length := int(first & 0x3f)
	if more := int(first >> 6); more > 0 {
		length = int(first & 0xf)
		for i, b := range d.bytes(more) {
			length |= int(b) << (4 + 8*i)
		}
	}
	return d.bytes(length - (before - len(d.left)))
}

func (d *decoder) value() string {
	switch op := d.byte(); op {
	case 0x00, 0x01:
		return fmt.Sprint(op)
	case 0x0a:
		return fmt.Sprint(d.byte())
	case 0x0b:
		return fmt.Sprint(binary.LittleEndian.Uint16(d.bytes(2)))
	case 0x0c:
		return fmt.Sprint(binary.LittleEndian.Uint32(d.bytes(4)))
	case 0x11:
		buffer := decoder{t: d.t, left: d.object()}
		return fmt.Sprintf("buffer(%s) %x", buffer.value(), buffer.left)
	case 0x12:
		list := decoder{t: d.t, left: d.object()}
		elements := make([]string, list.byte())
		for i := range elements {
			elements[i] = list.value()
		}
		if len(list.left) > 0 {
			d.t.Fatalf("a package has %d more bytes than its %d elements", len(list.left), len(elements))
		}
		return "package(" + strings.Join(elements, " ") + ")"
	default:
		d.t.Fatalf("unknown operation %#x", op)
		return ""
	}
}
