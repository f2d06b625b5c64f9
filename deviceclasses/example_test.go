package deviceclasses_test

import (
	"fmt"
	"log"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// A claim says how it uses a zone. What it leaves out comes from its class.
func ExampleZoneConfig_DecodeOver() {
	class := []byte(`{
		"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig",
		"cores": "one-thread-per-core", "l3": "prefer"
	}`)
	claim := []byte(`{
		"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig",
		"l3": "require"
	}`)

	var config deviceclasses.ZoneConfig
	for _, parameters := range [][]byte{class, claim} {
		var err error
		if config, err = config.DecodeOver(parameters); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("cores:", config.Cores)
	fmt.Println("l3:", config.L3)
	// Output:
	// cores: one-thread-per-core
	// l3: require
}

// A field that a ZoneConfig does not have is an error.
func ExampleZoneConfig_DecodeOver_unknownField() {
	parameters := []byte(`{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "core": "whole"}`)
	_, err := deviceclasses.ZoneConfig{}.DecodeOver(parameters)
	fmt.Println(err)
	// Output:
	// unknown field "core", allowed are apiVersion, kind, cores, l3, placement, coreType, partition, mixed, memoryPolicy, locked
}

// A bad value is an error that names the field and what is allowed.
func ExampleZoneConfig_Validate() {
	config := deviceclasses.ZoneConfig{Partition: "exclusive"}
	fmt.Println(config.Validate())

	config.Partition = deviceclasses.PartitionIsolated
	fmt.Println(config.Validate())
	// Output:
	// partition: "exclusive", allowed are root, isolated, none
	// <nil>
}

// A claim of PCI functions can ask for another kernel driver.
func ExampleDeviceConfig_DecodeOver() {
	decode := func(driver string) {
		parameters := fmt.Appendf(nil, `{"apiVersion": "dra.numa/v1alpha1", "kind": "DeviceConfig", "driver": %q}`, driver)
		config, err := deviceclasses.DeviceConfig{}.DecodeOver(parameters)
		fmt.Printf("%q, %v\n", config.Driver, err)
	}
	decode("vfio-pci")
	decode("uio")
	// Output:
	// "vfio-pci", <nil>
	// "", driver: "uio", allowed is vfio-pci
}

// A NodeConfig is a file. A profile holds for the nodes that have its labels.
func ExampleDecodeNodeConfig() {
	config, err := deviceclasses.DecodeNodeConfig([]byte(`
apiVersion: dra.numa/v1alpha1
kind: NodeConfig
reservedCPUs: 0-1
reservedMemory: 256Mi
profiles:
- nodeSelector: {pool: batch}
  reservedCPUs: 0-3
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, pool := range []string{"web", "batch"} {
		settings := config.For(map[string]string{"pool": pool})
		fmt.Printf("%s: reserved are CPUs %s and %d bytes\n", pool, settings.ReservedCPUs, settings.ReservedMemoryBytes())
	}
	// Output:
	// web: reserved are CPUs 0-1 and 268435456 bytes
	// batch: reserved are CPUs 0-3 and 268435456 bytes
}

// An error names the path of the field in the file.
func ExampleDecodeNodeConfig_badField() {
	_, err := deviceclasses.DecodeNodeConfig([]byte(`
apiVersion: dra.numa/v1alpha1
kind: NodeConfig
profiles:
- nodeSelector: {pool: batch}
  zoneBy: core
`))
	fmt.Println(err)
	// Output:
	// profiles[0].zoneBy: "core", allowed are numa, l3, socket, coreType, machine
}
