package build

import (
	"context"
	"strings"
)

// Images makes the archives of the images that every node starts with, all of them
// nothing but busybox, and returns their paths: docker.io/library/busybox:1.37 runs a shell,
// localhost/pause:1 sleeps and holds a pod's namespaces. The first has the name of a public
// image, so that manifests for other clusters run here, where no registry is reached. They are
// stopped by SIGKILL: as PID 1 of a container neither would end otherwise before its grace
// period does.
func (c Cache) Images(ctx context.Context) ([]string, error) {
	list, err := c.output(ctx, c.Dir, nil, "/bin/busybox", "--list")
	if err != nil {
		return nil, err
	}
	files := []string{"/bin/busybox=/bin/busybox"}
	for _, applet := range strings.Fields(list) {
		if applet != "busybox" {
			files = append(files, "/bin/"+applet+"=->busybox")
		}
	}
	var archives []string
	for _, image := range []struct{ name, ref, entrypoint string }{
		{"busybox-1.37", "docker.io/library/busybox:1.37", "/bin/sh"},
		{"pause", "localhost/pause:1", "/bin/sleep 2147483647"},
	} {
		archive := c.Path("images", image.name+".tar")
		archives = append(archives, archive)
		err := c.once(ctx, "images/"+image.name, "SIGKILL "+image.entrypoint+list, func() error {
			args := append([]string{"run", "./deployments/image", "--ref", image.ref, "--out", archive, "--stop-signal", "SIGKILL", "--entrypoint", image.entrypoint}, files...)
			return c.run(ctx, c.Source, []string{"CGO_ENABLED=0"}, "go", args...)
		})
		if err != nil {
			return nil, err
		}
	}
	return archives, nil
}
