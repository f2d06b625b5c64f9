package deviceclasses

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// EventName returns the name of an event on a pod, made of all that it says: what is said twice
// is one event. It has at most 200 bytes of the pod's name.
func EventName(pod string, says ...string) string {
	hash := sha256.Sum256([]byte(strings.Join(says, "\x00")))
	name := strings.TrimRight(pod[:min(len(pod), 200)], "-.") // a part of a name may end so, and a name may not
	return fmt.Sprintf("%s.%x", name, hash[:8])
}
