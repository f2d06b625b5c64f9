package build

import (
	"bytes"
	"fmt"
)

// cpio writes the "newc" format that the kernel unpacks as an initramfs
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type cpio struct {
	buf   bytes.Buffer
	inode int
}

func (c *cpio) dir(name string)                               { c.entry(name, 0o040755, nil) }
func (c *cpio) file(name string, mode uint32, content []byte) { c.entry(name, 0o100000|mode, content) }

func (c *cpio) bytes() []byte {
	c.entry("TRAILER!!!", 0, nil)
	return c.buf.Bytes()
}

func (c *cpio) entry(name string, mode uint32, content []byte) {
	c.inode++
	fmt.Fprintf(&c.buf, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	c.buf.WriteString(name)
	c.buf.WriteByte(0)
	c.pad()
	c.buf.Write(content)
	c.pad()
}

func (c *cpio) pad() {
	for c.buf.Len()%4 != 0 {
		c.buf.WriteByte(0)
	}
}
