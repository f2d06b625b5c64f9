package driver

import (
	"errors"
	"strings"
	"testing"
)

// A claim whose memory policy nothing would set is not prepared. What it holds already stays.
func TestMemoryPoliciesThatNothingSets(t *testing.T) {
	driver := newDisk(t).open()
	var missing error
	driver.SetMemoryPolicies(func() error { return missing })
	policy := fromClaim(`"memoryPolicy": "interleave"`)
	first := configured(claim("a", counted(result("r", "numa-0", 2))), policy)
	mustPrepare(t, driver, first)
	missing = errors.New("runtime 1.0 does not set it")
	mustPrepare(t, driver, first)
	mustPrepare(t, driver, claim("b", counted(result("r", "numa-1", 2))))
	second := configured(claim("c", counted(result("r", "numa-1", 2))), policy)
	if _, _, err := driver.Prepare(second, nil); err == nil || err.Error() != "request r: memoryPolicy interleave: runtime 1.0 does not set it" {
		t.Errorf("error %v, want why nothing sets the policy", err)
	}
	seen := result("r", "numa-1", 2)
	seen.AdminAccess = new(true)
	mustPrepare(t, driver, configured(claim("admin", seen), policy)) // it holds nothing
	for _, grant := range driver.Grants() {
		if strings.HasSuffix(grant.Name, "c") {
			t.Errorf("claim %s is on record", grant.Name)
		}
	}
	missing = nil
	mustPrepare(t, driver, second)
}

// The hook compares the policy with what the kernel shows: see package pin.
