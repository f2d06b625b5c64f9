package driver

import (
	"encoding/json"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// hostileClaim is a claim of a tenant as the scheduler allocates it. The name of its request
// and the parameters are the tenant's.
const hostileClaim = `
metadata: {name: evil, namespace: team, uid: uid-evil, labels: {app: a}, annotations: {a: b}}
spec:
  devices:
    requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: "2"}}}}]
status:
  reservedFor: [{resource: pods, name: p, uid: u}]
  allocation:
    devices:
      results: [{request: zone, driver: dra.numa, pool: POOL, device: numa-1, shareID: share-zone, consumedCapacity: {cpu: "2", memory: "0"}}]
      config: [{source: FromClaim, requests: [zone], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, cores: whole, partition: root}}}]
`

// mostOfAnError is how long an error may be: the kubelet makes an event of it.
const mostOfAnError = 1024

// Whatever a tenant writes into a field, the daemon gives the claim no CPU of another claim,
// leaves the files of that claim alone, and says what is wrong in one line that a terminal
// can show.
func TestNoFieldOfAClaimIsObeyed(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	other := claim("other", result("cpus", "numa-1", 2))
	mustPrepare(t, driver, other)
	before, held := disk.files(), grantOf(driver, "uid-other")
	refused, granted := 0, 0
	object.Variants(t, strings.ReplaceAll(hostileClaim, "POOL", node), func(path string, variant any) {
		text, err := json.Marshal(variant)
		if err != nil {
			t.Fatal(err)
		}
		var wanted resourceapi.ResourceClaim
		if json.Unmarshal(text, &wanted) != nil {
			return // an API server does not accept it
		}
		if _, _, err = driver.Prepare(&wanted, nil); err != nil {
			refused++
			if text := err.Error(); object.PrintFault(text) != "" || strings.Contains(text, "\n") || len(text) > mostOfAnError {
				t.Errorf("%s: %d bytes, %.300q", path, len(text), text)
			}
		} else {
			granted++
			assertDisjoint(t, driver)
			for name := range disk.files() {
				if strings.ContainsAny(name, "\x1b\n \u202e") {
					t.Errorf("%s: there is a file %q", path, name)
				}
			}
		}
		if err := driver.Unprepare("uid-evil"); err != nil {
			t.Errorf("%s: unprepare: %.300q", path, err)
		}
		if got := grantOf(driver, "uid-other"); got.CPUs() != held.CPUs() {
			t.Errorf("%s: the other claim has %s, had %s", path, got.CPUs(), held.CPUs())
		}
		assertFiles(t, disk.files(), before)
	})
	if refused < 10 || granted < 5 {
		t.Errorf("%d claims were refused and %d granted", refused, granted)
	}
}
