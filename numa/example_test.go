package numa_test

import (
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// server is a machine of two sockets, each with two cores of two threads. To read
// the real machine, pass os.DirFS("/").
func server() fs.FS {
	return fake.Machine{Sockets: 2, CoresPerSocket: 2, Threads: 2, MemoryBytes: 4 << 30}.FS()
}

func ExampleRead() {
	machine, err := numa.Read(server())
	if err != nil {
		log.Fatal(err)
	}
	for _, zone := range machine.Zones {
		fmt.Printf("zone %d: cpus %s, %d MiB\n", zone.ID, zone.CPUs, *zone.MemoryBytes>>20)
		for _, distance := range zone.Distances {
			fmt.Printf("  %d to zone %d\n", distance.Value, distance.Zone)
		}
	}
	for _, core := range machine.Cores {
		fmt.Printf("core of zone %d: cpus %s\n", core.Zone, core.CPUs)
	}
	// Output:
	// zone 0: cpus 0-1,4-5, 4096 MiB
	//   10 to zone 0
	//   21 to zone 1
	// zone 1: cpus 2-3,6-7, 4096 MiB
	//   21 to zone 0
	//   10 to zone 1
	// core of zone 0: cpus 0,4
	// core of zone 0: cpus 1,5
	// core of zone 1: cpus 2,6
	// core of zone 1: cpus 3,7
}

func ExampleMachine_Zone() {
	machine, err := numa.Read(server())
	if err != nil {
		log.Fatal(err)
	}
	zone, ok := machine.Zone(1)
	fmt.Println(zone.CPUs, ok, machine.ThreadsPerCore(1))
	_, ok = machine.Zone(7)
	fmt.Println(ok)
	// Output:
	// 2-3,6-7 true 2
	// false
}

// A daemon reads the machine again when its signature changes.
func ExampleSignature() {
	folder, err := os.MkdirTemp("", "machine")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	machine := fake.Machine{Sockets: 1, CoresPerSocket: 2, Threads: 2, MemoryBytes: 4 << 30}
	if err := machine.Write(folder); err != nil {
		log.Fatal(err)
	}
	root := os.DirFS(folder)
	before, err := numa.Signature(root, true)
	if err != nil {
		log.Fatal(err)
	}
	same, _ := numa.Signature(root, true)
	fmt.Println("changed:", same != before)

	online := filepath.Join(folder, "sys/devices/system/cpu/online")
	if err := os.WriteFile(online, []byte("0-2\n"), 0o600); err != nil { // CPU 3 goes offline
		log.Fatal(err)
	}
	after, _ := numa.Signature(root, true)
	fmt.Println("changed:", after != before)
	// Output:
	// changed: false
	// changed: true
}
