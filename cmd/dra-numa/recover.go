package main

import (
	"context"
	"os"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

// claimsTimeout bounds the requests about the claims on record. A claim without an
// answer keeps what it has.
const claimsTimeout = 30 * time.Second

// recoverClaims decides what the claims on record still hold, by what the API server
// and the kernel say. It also removes the metadata that the kubelet helper wrote for
// claims that are gone. It returns the answers of the API server.
func recoverClaims(ctx context.Context, o options, client kubernetes.Interface, core *driver.Driver) (map[types.UID]*resourceapi.ResourceClaim, error) {
	logger := klog.FromContext(ctx)
	held, err := readHeld(os.DirFS(o.cgroupRoot))
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, claimsTimeout)
	defer cancel()
	claims, err := kubeletplugin.ReadClaims(asking, client, core.Grants())
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		logger.Error(err, "Reading claims failed: those without an answer keep what they have")
	}
	report, err := core.Recover(claims, held)
	if err != nil {
		return nil, err
	}
	for _, finding := range report {
		logger.Info("Recovered", "finding", finding.String())
	}
	err = kubeletplugin.RemoveStaleMetadata(asking, client, o.nodeName, o.pluginDir(), o.cdiDir, core.Grants())
	if err != nil {
		logger.Error(err, "Keeping metadata of claims that may be gone")
	}
	return claims, ctx.Err()
}
