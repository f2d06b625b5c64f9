package numa_test

import (
	"os"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// BenchmarkRead reads generated machines from a real directory, as the driver does from /sys.
func BenchmarkRead(b *testing.B) {
	for _, machine := range []struct{ name, preset string }{
		{"512cpus", "512cpus"},
		{"1024cpus16nodes", "1024cpus-16nodes"},
	} {
		b.Run(machine.name, func(b *testing.B) {
			root := os.DirFS(writeFake(b, machine.preset))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := numa.Read(root); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// writeFake writes one of the generator's machines and returns its folder.
func writeFake(tb testing.TB, preset string) (folder string) {
	tb.Helper()
	for _, candidate := range fake.Presets() {
		if candidate.Name != preset {
			continue
		}
		folder = tb.TempDir()
		if err := candidate.Machine.Write(folder); err != nil {
			tb.Fatal(err)
		}
		return folder
	}
	tb.Fatalf("the generator has no machine %s", preset)
	return ""
}
