package client

import (
	"k8s.io/client-go/discovery"
)

// Release136 is the older of the two releases of Kubernetes that the tests know.
// Its API server has DeviceTaintRules in no version that ours reads, and its alpha
// of node allocatable resources has other fields.
const Release136 = "1.36"

// Release is that of the cluster's API server, such as 1.37.
func Release(server discovery.ServerVersionInterface) (string, error) {
	version, err := server.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.Major + "." + version.Minor, nil
}
