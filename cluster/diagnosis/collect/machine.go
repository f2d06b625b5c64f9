package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
)

// MachineSetting is the name of a node's files in Unread.
const MachineSetting = "files of the machine"

// Machines asks the driver's pods for the files of their machines, in the form of package
// capture. All archives together have at most machinesBytes.
func Machines(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string) (archives map[string][]byte, unread []diagnosis.Unread) {
	archives, unread = askPods(ctx, exec, facts, nodes, MachineSetting, func(ctx context.Context, p program) ([]byte, error) {
		archive, err := p.run(ctx, "machine", "machine-root")
		if err == nil {
			_, err = capture.Read(bytes.NewReader(archive))
		}
		return archive, err
	})
	return archives, append(unread, limited(archives, machinesBytes)...)
}

// limited removes the last archives, by node, if all together have more than room bytes.
func limited(archives map[string][]byte, room int) (unread []diagnosis.Unread) {
	for _, node := range slices.Sorted(maps.Keys(archives)) {
		if room -= len(archives[node]); room < 0 {
			delete(archives, node)
			unread = append(unread, diagnosis.Unread{
				Node: node, Component: diagnosis.DaemonName, Setting: MachineSetting, Why: fmt.Sprintf("the files of other machines take all of %d MiB", machinesBytes>>20),
			})
		}
	}
	return unread
}

// machinesBytes limits the archives of machines in a bundle. A machine with 256 CPUs has
// some 10 KiB.
const machinesBytes = 256 << 20

// configBytes limits the configuration of a daemon.
const configBytes = 1 << 20

// Configs asks the daemons for their effective configurations, in YAML.
func Configs(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string) (configs map[string][]byte, unread []diagnosis.Unread) {
	return askPods(ctx, exec, facts, nodes, "effective configuration", func(ctx context.Context, p program) ([]byte, error) {
		if p.container != diagnosis.DriverContainer {
			return nil, errors.New("the daemon does not run")
		}
		text, err := p.run(ctx, "config --pid 1")
		if err == nil && len(text) > configBytes {
			err = fmt.Errorf("the configuration has %d bytes, at most %d are kept", len(text), configBytes)
		}
		return text, err
	})
}
