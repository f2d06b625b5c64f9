package pick_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// server is one zone of 8 cores of two threads. Four cores each share a level-3
// cache: 0,8 to 3,11 and 4,12 to 7,15.
func server() numa.Machine {
	declared := fake.Machine{Sockets: 1, L3sPerSocket: 2, CoresPerSocket: 8, Threads: 2, MemoryBytes: 16 << 30}
	machine, err := numa.Read(declared.FS())
	if err != nil {
		log.Fatal(err)
	}
	return machine
}

// By default a claim gets whole cores of one level-3 cache.
func ExamplePicker_Pick() {
	machine := server()
	picker := pick.New(machine)
	choice, err := picker.Pick(machine.Online, pick.Request{CPUs: 4, Zones: []int{0}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(choice.CPUs)
	fmt.Println(choice.Why)

	// The next claim goes to the same cache. The other one stays free for larger claims.
	free := machine.Online.Difference(choice.CPUs)
	choice, err = picker.Pick(free, pick.Request{CPUs: 2, Zones: []int{0}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(choice.CPUs)
	fmt.Println(choice.Why)
	// Output:
	// 0-1,8-9
	// 2 whole cores in L3 0, the tightest with 8 free
	// 2,10
	// 1 whole core in L3 0, the tightest with 4 free
}

// One thread per core: the siblings belong to the claim and stay idle.
func ExamplePicker_Pick_oneThreadPerCore() {
	machine := server()
	request := pick.Request{CPUs: 3, Zones: []int{0}, Cores: pick.OneThreadPerCore}
	choice, err := pick.New(machine).Pick(machine.Online, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("cpus", choice.CPUs, "idle", choice.Idle)
	fmt.Println(choice.Why)
	// Output:
	// cpus 0-2 idle 8-10
	// 3 cores with 3 cpus kept idle in L3 0, the tightest with 4 cores free
}

// Packed CPUs leave the largest room for others. Spread ones have a part of every
// level-3 cache.
func ExamplePicker_Pick_placement() {
	machine := server()
	picker := pick.New(machine)
	for _, placement := range []pick.Placement{pick.Pack, pick.Spread} {
		choice, err := picker.Pick(machine.Online, pick.Request{CPUs: 4, Zones: []int{0}, Placement: placement})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s, %s\n", placement, choice.CPUs, choice.Why)
	}
	// Output:
	// pack: 0-1,8-9, 2 whole cores in L3 0, the tightest with 8 free
	// spread: 0,4,8,12, 2 whole cores in 2 L3s, spread evenly
}

// A zone may not have what a request insists on.
func ExamplePicker_Pick_notEnough() {
	machine := server()
	free := machine.Online.Difference(cpuset.New(0, 4)) // a core of each cache is broken
	request := pick.Request{CPUs: 8, Zones: []int{0}, L3: pick.RequireOneL3}
	_, err := pick.New(machine).Pick(free, request)
	fmt.Println(err)
	fmt.Println(errors.Is(err, pick.ErrNotEnough))
	// Output:
	// select 8 cpus of zone 0, which has 7 free in one L3: not enough free cpus
	// true
}
