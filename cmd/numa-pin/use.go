package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// using is the command line of numa-pin use.
type using struct {
	claim         pin.ClaimRef
	function      string         // address of a PCI function of the claim; "" for none
	nodes         []devnode.Node // that the container gets of it, without paths
	lock, records string
}

// runUse records that the container whose OCI state is on standard input uses a claim. It
// stops the container if a PCI function does not have the device nodes any more that the
// container gets: the kernel may have given their numbers to another function.
//
// It does nothing for a runtime that runs containers in virtual machines.
func runUse(c cli.Call, host host, streams streams) error {
	u, err := parseUse(c)
	if err != nil {
		return err
	}
	state, err := readState(streams.in)
	if err != nil {
		return u.errorf("container", err)
	}
	container, err := state.cgroup(host.proc)
	if errors.Is(err, pin.ErrNotSupported) {
		return nil
	}
	if err == nil {
		err = u.check(host)
	}
	if err == nil {
		err = useLocked(host, u.lock, u.records, container, u.claim)
	}
	if err == nil {
		return nil
	}
	return leaveRefusal(u.claim, u.records, host, state, u.errorf("container "+state.ID, err))
}

func (u using) errorf(container string, err error) error {
	return fmt.Errorf("let %s use claim %s: %w", container, u.claim.Name, err)
}

// check returns an error unless the function has the device nodes.
func (u using) check(host host) error {
	if u.function == "" {
		return nil
	}
	now, err := devnode.Read(os.DirFS(host.machine), u.function)
	if err != nil {
		return err
	}
	for _, node := range u.nodes {
		if !slices.ContainsFunc(now.Nodes, func(n devnode.Node) bool { return n.Number() == node.Number() }) {
			return fmt.Errorf("PCI function %s no longer has the device %s, which the claim was given: delete the pod", u.function, node.Number())
		}
	}
	return nil
}

// stopFile is next to the directory of the records. While it exists, nothing is pinned.
const stopFile = "stop-pinning"

// isStopped reports whether pinning is stopped, by which file.
func isStopped(records string) (file string, stopped bool) {
	file = filepath.Join(filepath.Dir(records), stopFile)
	_, err := os.Stat(file)
	return file, err == nil
}

// recordUse records that the container whose OCI state is on standard input uses the claim,
// while pinning is stopped: then nothing may stop a container.
func recordUse(host host, streams streams, lock, records string, claim pin.ClaimRef) {
	var container string
	state, err := readState(streams.in)
	if err == nil {
		container, err = state.cgroup(host.proc)
	}
	if err == nil {
		err = useLocked(host, lock, records, container, claim)
	}
	if err != nil {
		fmt.Fprintf(streams.err, "numa-pin: %v\n", err)
	}
}

func useLocked(host host, lock, records, container string, claim pin.ClaimRef) error {
	return withHost(host, lock, records, func(opened pin.Host) error { return pin.Use(opened, container, claim) })
}

func parseUse(c cli.Call) (u using, err error) {
	flags := c.Flags()
	addClaim(flags, &u.claim, &u.lock, &u.records)
	flags.StringVar(&u.function, "function", "", "`address` of a PCI function of the claim")
	flags.Func("nodes", "`numbers` of the device nodes that the container gets of it, such as c240:0,b259:3", func(list string) (err error) {
		u.nodes, err = parseNodes(list)
		return err
	})
	if err := c.ParseAll(flags, "uid", "claim"); err != nil {
		return u, err
	}
	switch {
	case u.function == "" && len(u.nodes) > 0:
		return u, cli.Usagef("--function is missing: --nodes are those of a function")
	case u.function != "" && !numa.IsPCIAddress(u.function):
		return u, cli.Usagef("--function=%s is not a PCI address such as 0000:3b:00.0", u.function)
	}
	return u, nil
}

// parseNodes reads device numbers such as c240:0,b259:3; "" is none.
func parseNodes(list string) (nodes []devnode.Node, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		node, err := devnode.ParseNumber(text)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}
