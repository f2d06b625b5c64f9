package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// formats returns every text about a grant that leaves the driver: the CDI spec, with
// the note that recovery reads, and the attributes in a container's metadata. Other
// releases read them.
func formats(t *testing.T, grant Grant) string {
	t.Helper()
	var text bytes.Buffer
	for _, by := range []string{deviceclasses.ExclusivityKernel, deviceclasses.ExclusivityNone} {
		claim := grant.CDIClaim(by == deviceclasses.ExclusivityKernel)
		claim.Note = EncodeNote("boot-1", NewListed(grant))
		spec, err := cdi.Encode(claim, cdi.Hook{Path: "/opt/numa-pin", Dir: "/opt"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s: %s", by, spec)
	}
	fmt.Fprintf(&text, "%s\n", grant)
	for _, share := range grant.Shares {
		attributes, err := json.Marshal(share.Attributes())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s %s %s\n", share.Request, share.Kind.cdiDevices("own"), attributes)
	}
	return text.String()
}

func TestEveryTextOfAGrantIsAsReleased(t *testing.T) {
	for _, grant := range sampleCheckpoint().Grants {
		files.Golden(t, filepath.Join("testdata", "formats", string(grant.UID)+".txt"), formats(t, grant))
	}
}
