package chart

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

func cachesText(t *testing.T, c holdings.Cluster, o draw.TextOptions) string {
	t.Helper()
	return files.Render(t, func(w io.Writer) error { return CachesText(w, c, nil, o) })
}

func TestCachesGolden(t *testing.T) {
	c := holdings.Of(&occupied.Divided(t).Snapshot)
	only, _ := c.Only("worker-1")
	for name, c := range map[string]holdings.Cluster{"all": c, "worker-1": only} {
		files.Golden(t, filepath.Join("testdata", "caches", name+".txt"), cachesText(t, c, draw.TextOptions{}))
		files.Golden(t, filepath.Join("testdata", "caches", name+".svg"), files.Render(t, func(w io.Writer) error { return CachesSVG(w, c, nil) }))
	}
}

// Without caches that are divided, the answer is one line, which says why that can be.
func TestNoCachesIsOneLine(t *testing.T) {
	const want = "No caches are divided: no NodeConfig sets cache, or no kernel supports it.\n"
	for name, c := range map[string]*occupied.Cluster{"none": occupied.New(t), "showcase": occupied.Showcase(t)} {
		if got := cachesText(t, holdings.Of(&c.Snapshot), draw.TextOptions{}); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func TestCachesFitTheirWidth(t *testing.T) {
	c := occupied.Divided(t)
	c.AddNode("worker-3") // the slices are gone, a claim is not
	c.AddClaim("prod/lost", occupied.Share{
		Node: "worker-3", Device: "cache-7-guaranteed", Amounts: "ways=9223372036854775807,classes=1",
		Cache: &deviceclasses.CacheStatus{Pool: "guaranteed", L3: 7, Ways: 1 << 40},
	})
	c.AddClaim("prod/unknown", occupied.Share{Node: "worker-3", Device: "cache-8-shared", Amounts: "members=70000"})
	for _, width := range []int{draw.MinWidth, 60, draw.DefaultWidth, 300} {
		text := cachesText(t, holdings.Of(&c.Snapshot), draw.TextOptions{Width: width})
		if !strings.Contains(text, "cache 7") || !strings.Contains(text, "cache, id not known") || len(text) > 1<<14 {
			t.Errorf("width %d:\n%s", width, text)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > width || strings.TrimRight(line, " ") != line {
				t.Errorf("width %d: line %q", width, line)
			}
		}
	}
}
