package onenode

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkCase measures the cases of cases.json in the folder INPUT, which make
// bench-allocator writes. Its type in test/scale/allocator says what the fields are. The order
// is another one each time: the first case has the coldest caches.
func BenchmarkCase(b *testing.B) {
	text, err := os.ReadFile(filepath.Join(os.Getenv("INPUT"), "cases.json"))
	if err != nil {
		b.Fatal(err)
	}
	var cases []struct {
		Name    string
		Slices  []*resourceapi.ResourceSlice
		Classes []*resourceapi.DeviceClass
		Held    []struct {
			Driver, Device string
			Consumed       map[resourceapi.QualifiedName]resource.Quantity
		}
		Elsewhere int
		Claim     resourceapi.DeviceClaim
		Want      string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		b.Fatal(err)
	}
	rand.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	for _, c := range cases {
		b.Run(c.Name, func(b *testing.B) {
			classes := lister{}
			for _, class := range c.Classes {
				classes[class.Name] = class
			}
			held := elsewhere(c.Elsewhere)
			for _, h := range c.Held {
				held = append(held, share{h.Driver, node, h.Device, types.UID(h.Device), h.Consumed})
			}
			measure(b, classes, c.Slices, held, c.Claim, c.Want)
		})
	}
}
