package deviceclasses

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// EventPodLength limits the pod's name in the name of an event, in bytes.
const EventPodLength = 200

// EventName returns the name of an event on a pod, made of all that it says: what is said twice
// is one event.
func EventName(pod string, says ...string) string {
	hash := sha256.Sum256([]byte(strings.Join(says, "\x00")))
	name := strings.TrimRight(pod[:min(len(pod), EventPodLength)], "-.") // a part of a name may end so, and a name may not
	return fmt.Sprintf("%s.%x", name, hash[:8])
}
