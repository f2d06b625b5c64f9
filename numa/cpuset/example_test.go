package cpuset_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A file of the kernel, such as /sys/devices/system/cpu/online, holds a list. The
// newline at its end does no harm.
func ExampleParse() {
	online, err := cpuset.Parse("0-3,8,10-11\n")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(online.Size(), "CPUs:", online)

	_, err = cpuset.Parse("3-1")
	fmt.Println(err)
	// Output:
	// 7 CPUs: 0-3,8,10-11
	// cpulist "3-1": range "3-1" runs backwards
}

// Older files of the kernel, such as shared_cpu_map, hold a mask.
func ExampleParseMask() {
	cpus, err := cpuset.ParseMask("00000001,0000ff0f")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cpus)
	// Output:
	// 0-3,8-15,32
}

// Methods that combine two sets leave both as they were.
func ExampleSet() {
	zone := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)
	held := cpuset.New(2, 3, 8)

	fmt.Println("free:   ", zone.Difference(held))
	fmt.Println("held:   ", zone.Intersection(held))
	fmt.Println("all:    ", zone.Union(held))
	fmt.Println("overlap:", zone.Overlaps(held))
	fmt.Println("subset: ", held.IsSubsetOf(zone))
	// Output:
	// free:    0-1,4-7
	// held:    2-3
	// all:     0-8
	// overlap: true
	// subset:  false
}

// A set is a value: == compares two of them, and a copy is a set of its own.
func ExampleSet_Insert() {
	before := cpuset.New(4)
	after := before
	after.Insert(5)
	fmt.Println(before, after, before == after)
	// Output:
	// 4 4-5 false
}

func ExampleSet_All() {
	for cpu := range cpuset.New(8, 0, 1).All() {
		fmt.Println("cpu", cpu)
	}
	// Output:
	// cpu 0
	// cpu 1
	// cpu 8
}

// In JSON and YAML a set is its list.
func ExampleSet_MarshalText() {
	text, err := json.Marshal(map[string]cpuset.Set{"cpus": cpuset.New(0, 1, 2, 8)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output:
	// {"cpus":"0-2,8"}
}
