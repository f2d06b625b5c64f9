package bundle

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// addresses replaces addresses of networks in the attributes of other drivers' devices, and
// in errors and events. The same address is always replaced by the same text, so that a
// constraint that compares the attributes of two devices has the same answer.
type addresses map[string]string // by the address, or the value of the attribute

// redactedSlice keeps this driver's slices as they are: they have no addresses of networks.
func (a addresses) redactedSlice(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	kept := &resourceapi.ResourceSlice{ObjectMeta: redactedMeta(slice.ObjectMeta), Spec: slice.Spec}
	if slice.Spec.Driver == driver.Name {
		return kept
	}
	kept.Spec.Devices = append([]resourceapi.Device(nil), slice.Spec.Devices...)
	for i := range kept.Spec.Devices {
		attributes := maps.Clone(kept.Spec.Devices[i].Attributes)
		for name, value := range attributes {
			attributes[name] = a.redacted(value)
		}
		kept.Spec.Devices[i].Attributes = attributes
	}
	return kept
}

func (a addresses) redacted(value resourceapi.DeviceAttribute) resourceapi.DeviceAttribute {
	if value.StringValue != nil {
		value.StringValue = new(a.replaced(*value.StringValue))
	}
	if value.StringValues != nil {
		texts := make([]string, len(value.StringValues))
		for i, text := range value.StringValues {
			texts[i] = a.replaced(text)
		}
		value.StringValues = texts
	}
	return value
}

// replaced returns the text itself if it has no address.
func (a addresses) replaced(text string) string {
	if !hasAddress(text) {
		return text
	}
	if a[text] == "" {
		a[text] = fmt.Sprintf("address-%d", len(a)+1)
	}
	return a[text]
}

// word is text that may begin with an IP address.
var word = regexp.MustCompile(`[\w:.]*[:.][\w:.]*`)

// inText replaces the IP addresses in a text, such as an error.
func (a addresses) inText(text string) string {
	return word.ReplaceAllStringFunc(text, func(found string) string {
		for host := found; ; { // a port, or the end of a clause, may follow
			if _, err := netip.ParseAddr(host); err == nil {
				return a.replaced(host) + found[len(host):]
			}
			end := strings.LastIndexAny(host, ":.")
			if end < 0 {
				return found
			}
			host = host[:end]
		}
	})
}

// inReasons replaces the IP addresses in the reasons why something was not read.
func (a addresses) inReasons(unread []diagnosis.Unread) []diagnosis.Unread {
	kept := slices.Clone(unread)
	for i := range kept {
		kept[i].Why = a.inText(kept[i].Why)
	}
	return kept
}

// guid is a hardware address of InfiniBand: ib0's node_guid in sysfs.
var guid = regexp.MustCompile(`^[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){3}$`)

// hasAddress reports whether a text, or a part of a list in it, is an IP address, also with
// a port or the length of a prefix, or a hardware address.
func hasAddress(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;| ", r) }) {
		_, notIP := netip.ParseAddr(part)
		_, notPrefix := netip.ParsePrefix(part)
		_, notPort := netip.ParseAddrPort(part)
		_, notMAC := net.ParseMAC(part)
		if notIP == nil || notPrefix == nil || notPort == nil || notMAC == nil || guid.MatchString(part) {
			return true
		}
	}
	return false
}
