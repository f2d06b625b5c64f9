package numa_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// BenchmarkRead reads generated machines from a real directory, as the driver does from
// /sys.
func BenchmarkRead(b *testing.B) {
	read := func(name string, declared fake.Machine) {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			if err := declared.Write(dir); err != nil {
				b.Fatal(err)
			}
			root := os.DirFS(dir)
			measure.Loop(b, func() error {
				_, err := numa.Read(root)
				return err
			})
		})
	}
	for _, cpus := range measure.Sizes() {
		read(fmt.Sprintf("cpus=%d", cpus), sample.Sized(cpus))
	}
	read("16nodes", sample.Preset(b, "1024cpus-16nodes"))
}
