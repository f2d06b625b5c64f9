package kubeletplugin

import (
	"context"
	"errors"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// hostPatience is how long a call of the kubelet waits for the kernel to bind or release
// a PCI function.
const hostPatience = 20 * time.Second

// withPatience tries again when the kernel has finished what it was asked. Meanwhile the
// driver serves other claims.
func withPatience(ctx context.Context, try func() error) error {
	end := time.Now().Add(hostPatience)
	for {
		err := try()
		var busy *driver.BusyError
		if !errors.As(err, &busy) || ctx.Err() != nil || busy.Wait(time.Until(end)) != nil {
			return err
		}
	}
}
