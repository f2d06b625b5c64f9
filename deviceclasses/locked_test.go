package deviceclasses

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestEveryFieldCanBeLocked also checks that a claim cannot lock any.
func TestEveryFieldCanBeLocked(t *testing.T) {
	for kind, row := range map[string]struct {
		head     string
		settings []setting
		of       reflect.Type
	}{
		ZoneConfigKind:        {zoneHead, ZoneConfig{}.settings(), reflect.TypeFor[ZoneConfig]()},
		DeviceConfigKind:      {deviceHead, DeviceConfig{}.settings(), reflect.TypeFor[DeviceConfig]()},
		CacheConfigKind:       {cacheHead, CacheConfig{}.settings(), reflect.TypeFor[CacheConfig]()},
		PerformanceConfigKind: {performanceHead, PerformanceConfig{}.settings(), reflect.TypeFor[PerformanceConfig]()},
	} {
		var want, got []string
		for _, field := range reflect.VisibleFields(row.of) {
			switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name {
			case "", "kind", "apiVersion", "locked":
			default:
				want = append(want, name)
			}
		}
		for _, setting := range row.settings {
			got = append(got, setting.name)
			parameters := fmt.Sprintf(`%s, "locked": [%q]}`, row.head, setting.name)
			if _, err := (RequestConfig{}).DecodeOver([]byte(parameters)); err != nil {
				t.Errorf("%s: %v", parameters, err)
			}
			_, err := RequestConfig{}.DecodeClaim([]byte(parameters), "c")
			if err == nil || err.Error() != "locked: only a DeviceClass can lock fields" {
				t.Errorf("claim with %s: error %v", parameters, err)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("fields of a %s that can be locked: %q, want %q", kind, got, want)
		}
	}
}

func TestClaimsDoNotChangeLockedFields(t *testing.T) {
	zone := func(fields string) string { return zoneHead + fields + "}" }
	device := func(fields string) string { return deviceHead + fields + "}" }
	performance := func(fields string) string { return performanceHead + fields + "}" }
	for name, row := range map[string]struct{ class, claim, want string }{
		"another field":       {zone(`, "partition": "isolated", "locked": ["partition"]`), zone(`, "cores": "thread", "mixed": true`), ""},
		"the same value":      {zone(`, "partition": "isolated", "locked": ["partition"]`), zone(`, "partition": "isolated"`), ""},
		"another value":       {zone(`, "partition": "isolated", "locked": ["cores", "partition"]`), zone(`, "partition": "none"`), `partition: "none", allowed is "isolated", because DeviceClass "c" locks this field`},
		"the default":         {zone(`, "partition": "isolated", "locked": ["partition"]`), zone(`, "partition": ""`), `partition: "root", allowed is "isolated", because DeviceClass "c" locks this field`},
		"over the default":    {zone(`, "locked": ["mixed"]`), zone(`, "mixed": true`), `mixed: "true", allowed is "false", because DeviceClass "c" locks this field`},
		"the default, twice":  {zone(`, "locked": ["partition", "l3"]`), zone(`, "partition": "root", "l3": "any"`), ""},
		"not locked":          {zone(`, "partition": "isolated", "locked": []`), zone(`, "partition": "none"`), ""},
		"not locked any more": {zone(`, "locked": ["mixed"]`) + "\n" + zone(`, "locked": ["partition"]`), zone(`, "mixed": true`), ""},
		"still locked":        {zone(`, "locked": ["mixed"]`) + "\n" + zone(`, "partition": "none"`), zone(`, "mixed": true`), `mixed: "true", allowed is "false", because DeviceClass "c" locks this field`},
		"in two steps":        {zone(`, "locked": ["mixed"]`), zone(`, "cores": "thread"`) + "\n" + zone(`, "mixed": true`), `mixed: "true", allowed is "false", because DeviceClass "c" locks this field`},
		"a driver":            {device(`, "driver": "vfio-pci", "locked": ["driver"]`), device(`, "driver": ""`), `driver: "", allowed is "vfio-pci", because DeviceClass "c" locks this field`},
		"no driver":           {device(`, "locked": ["driver"]`), device(`, "driver": "vfio-pci"`), `driver: "vfio-pci", allowed is "", because DeviceClass "c" locks this field`},
		"a governor":          {performance(`, "governor": "performance", "locked": ["governor"]`), performance(`, "governor": "powersave"`), `governor: "powersave", allowed is "performance", because DeviceClass "c" locks this field`},
		"no governor":         {performance(`, "locked": ["governor"]`), performance(`, "governor": "powersave"`), `governor: "powersave", allowed is "", because DeviceClass "c" locks this field`},
		"another latency":     {performance(`, "idleLatency": 20, "locked": ["idleLatency"]`), performance(`, "idleLatency": 0`), `idleLatency: "0", allowed is "20", because DeviceClass "c" locks this field`},
		"the same latency":    {performance(`, "idleLatency": 20, "locked": ["idleLatency"]`), performance(`, "idleLatency": 20, "interrupts": "away"`), ""},
		"of another kind":     {device(`, "locked": ["driver"]`), zone(`, "mixed": true`), ""},
	} {
		var config RequestConfig
		var err error
		for _, document := range strings.Split(row.class, "\n") {
			if config, err = config.DecodeOver([]byte(document)); err != nil {
				t.Fatal(err)
			}
		}
		class := config
		for _, document := range strings.Split(row.claim, "\n") {
			if config, err = config.DecodeClaim([]byte(document), "c"); err != nil {
				break
			}
		}
		var locked *LockedError
		if got := fmt.Sprint(err); errors.As(err, &locked) != (row.want != "") || row.want != "" && got != row.want {
			t.Errorf("%s: error %s, want %q", name, got, row.want)
		}
		if err == nil && !(reflect.DeepEqual(config.Zone.Locked, class.Zone.Locked) && reflect.DeepEqual(config.Device.Locked, class.Device.Locked)) {
			t.Errorf("%s: after the claim, %+v is locked differently from %+v", name, config, class)
		}
	}
}

// A configuration is read over the same class for each request.
func TestDecodingLeavesTheClassAlone(t *testing.T) {
	class, err := RequestConfig{}.DecodeOver([]byte(zoneHead + `, "locked": ["partition", "mixed"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := class.DecodeOver([]byte(zoneHead + `, "locked": ["cores"]}`)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"partition", "mixed"}; !reflect.DeepEqual(class.Zone.Locked, want) {
		t.Errorf("locked are %q, want %q", class.Zone.Locked, want)
	}
}
