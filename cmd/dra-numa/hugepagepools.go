package main

import (
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// hugepages reads how many hugepages the NUMA nodes have, which of them are free, and
// which the pods of claims have.
func (o *options) hugepages(root fs.FS, nodes cpuset.Set, granted map[string][]string) (now driver.Hugepages, err error) {
	now.Total, now.Free = make(map[int]map[string]uint64), make(map[int]map[string]uint64)
	for node := range nodes.All() {
		pools, err := numa.ReadHugepages(root, node)
		if err != nil {
			return driver.Hugepages{}, err
		}
		now.Total[node], now.Free[node] = make(map[string]uint64), make(map[string]uint64)
		for _, pool := range pools {
			if pool.FreePages != nil {
				size := resource.NewQuantity(int64(pool.PageBytes), resource.BinarySI).String()
				now.Total[node][size], now.Free[node][size] = (pool.TotalPages+pool.SurplusPages)*pool.PageBytes, *pool.FreePages*pool.PageBytes
			}
		}
	}
	pods, err := pin.HugepagesUsed(os.DirFS(o.cgroupRoot), os.DirFS(o.hook().RecordsDir()), granted)
	for _, pod := range pods {
		next := driver.PodHugepages{Sizes: make(map[string]driver.HugepagesUse)}
		for _, uid := range pod.Claims {
			next.Claims = append(next.Claims, types.UID(uid))
		}
		for size, use := range pod.Sizes {
			next.Sizes[size] = driver.HugepagesUse(use)
		}
		now.Pods = append(now.Pods, next)
	}
	return now, err
}
