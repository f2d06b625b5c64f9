package topology

import (
	"encoding/binary"
	"slices"
)

// This file writes the part of ACPI's machine language that PStateTable needs: chapter 20
// of the ACPI specification, and 6.4.3.7 for registers.

// Address spaces of a register.
const (
	systemIO      = 0x01
	fixedHardware = 0x7f
)

// table returns a table with its header and checksum: the sum of all bytes is 0.
func table(signature string, revision byte, body []byte) []byte {
	const headerBytes = 36
	header := slices.Concat([]byte(signature), binary.LittleEndian.AppendUint32(nil, uint32(headerBytes+len(body))),
		[]byte{revision, 0}, []byte("RIG   "), []byte("PSTATES "), []byte{1, 0, 0, 0}, []byte("RIG "), []byte{1, 0, 0, 0})
	all := append(header, body...)
	sum := byte(0)
	for _, b := range all {
		sum += b
	}
	all[9] = -sum
	return all
}

// scope returns objects below an absolute path.
func scope(path []string, objects []byte) []byte {
	name := []byte{'\\', 0x2f, byte(len(path))}
	for _, segment := range path {
		name = append(name, segment...)
	}
	return append([]byte{0x10}, withLength(append(name, objects...))...)
}

func named(name string, object []byte) []byte {
	return slices.Concat([]byte{0x08}, []byte(name), object)
}

func packageOf(elements ...[]byte) []byte {
	return append([]byte{0x12}, withLength(append([]byte{byte(len(elements))}, slices.Concat(elements...)...))...)
}

func integer(value uint64) []byte {
	switch {
	case value <= 1:
		return []byte{byte(value)} // ZeroOp, OneOp
	case value < 1<<8:
		return []byte{0x0a, byte(value)}
	case value < 1<<16:
		return binary.LittleEndian.AppendUint16([]byte{0x0b}, uint16(value))
	default:
		return binary.LittleEndian.AppendUint32([]byte{0x0c}, uint32(value))
	}
}

// register returns a buffer with a register's descriptor and the end tag of resources.
func register(space, bits byte, address uint64) []byte {
	descriptor := binary.LittleEndian.AppendUint64([]byte{0x82, 12, 0, space, bits, 0, 0}, address)
	descriptor = append(descriptor, 0x79, 0)
	return append([]byte{0x11}, withLength(append(integer(uint64(len(descriptor))), descriptor...))...)
}

// withLength puts the length in front of content. The length counts its own bytes, too.
func withLength(content []byte) []byte {
	if n := len(content) + 1; n < 1<<6 {
		return append([]byte{byte(n)}, content...)
	}
	if n := len(content) + 2; n < 1<<12 {
		return append([]byte{0x40 | byte(n&0xf), byte(n >> 4)}, content...)
	}
	n := len(content) + 3
	return append([]byte{0x80 | byte(n&0xf), byte(n >> 4), byte(n >> 12)}, content...)
}
