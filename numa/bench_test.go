package numa_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// BenchmarkRead reads generated machines from a real directory, as the driver does from
// /sys.
func BenchmarkRead(b *testing.B) {
	for _, preset := range []string{"512cpus", "1024cpus-16nodes"} {
		b.Run(strings.ReplaceAll(preset, "-", ""), func(b *testing.B) { // -16 would be read as GOMAXPROCS
			root := os.DirFS(sample.Folder(b, preset))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := numa.Read(root); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
