package ledger

import (
	"cmp"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// The attributes that a container can read of its shares, in the metadata file of
// KEP-5304. The page docs/zones.md lists them.

func (z *ZoneShare) attributes() map[string]resourceapi.DeviceAttribute {
	attributes := make(map[string]resourceapi.DeviceAttribute, 20) // has room for those of the zone
	if len(z.NUMANodes) == 1 {
		attributes[string(deviceclasses.AttributeNUMANode)] = intAttribute(z.NUMANodes[0])
	}
	add := func(name, value string) {
		if value != "" && len(value) <= resourceapi.DeviceAttributeMaxValueLength {
			attributes[name] = stringAttribute(value)
		}
	}
	add(deviceclasses.DriverName+"/mems", z.Binds().String())
	add(deviceclasses.DriverName+"/memoryPolicy", z.MemoryPolicy)
	if !z.CPUs.IsEmpty() {
		add(deviceclasses.DriverName+"/cpus", z.RunCPUs().String())
		add(deviceclasses.DriverName+"/idleCPUs", z.IdleCPUs.String())
		add(deviceclasses.DriverName+"/sharedCPUs", z.SharedCPUs.String())
		add(deviceclasses.DriverName+"/partition", z.partition())
		add(deviceclasses.DriverName+"/scope", cmp.Or(z.Scope, deviceclasses.ScopeContainer))
		attributes[deviceclasses.DriverName+"/mixed"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(z.Mixed)}
	}
	return attributes
}

// attributes returns what is known of a function even if it is not published any more.
func (f *FunctionShare) attributes() map[string]resourceapi.DeviceAttribute {
	attributes := make(map[string]resourceapi.DeviceAttribute, 32) // has room for the published ones
	for name, value := range f.known() {
		attributes[string(deviceclasses.FullName(name))] = value
	}
	return attributes
}

// known returns the same attributes as devices have them: each published function has them
// too.
func (f *FunctionShare) known() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	return map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		deviceclasses.AttributePCIBusID: stringAttribute(f.Address),
		deviceclasses.AttributeKind:     stringAttribute(f.Kind),
	}
}

func intAttribute(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
}

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}
