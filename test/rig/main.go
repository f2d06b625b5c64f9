// Command cluster is the test rig: a real Kubernetes control plane on this machine's
// loopback, and nodes that are virtual machines with as many NUMA nodes as a topology
// file says. Everything that it makes lies under one folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `cluster: a real Kubernetes cluster whose nodes are virtual NUMA machines

  cluster up [-name N] [-nodes n] [-topology FILE] [-kernel 6.12|7.2|6.1] [-init busybox|systemd]
             [-cri containerd|crio] [-layout common|sealed|selinux] [-boot PARAMETERS]
             [-kubernetes 1.37|1.36|1.38] [-feature-gates LIST] [-source DIR] [-speed PERCENT]
                         build what is missing, start, wait until ready; with -speed
                         as on a machine that is as much slower
  cluster down [-name N] stop everything and remove the cluster's folder
  cluster exec [-name N] -node NODE -- COMMAND [ARG…]
                         run a command as root in a node; its exit code is ours
  cluster load [-name N] ARCHIVE…
                         import image archives into every node
  cluster console [-name N] -node NODE
                         what the node printed on its console
  cluster monitor [-name N] -node NODE -- COMMAND [ARG…]
                         have the monitor of a node's QEMU run a command
  cluster restart [-name N] PROGRAM
                         restart a program of the control plane, such as scheduler
  cluster path [-name N] kubeconfig|kubectl|logs
                         print where something is
  cluster qemu           build the QEMU for machines with resctrl if it is missing, as
                         up does: at a low priority beside other clusters, for example

Everything lies under $RIG_DIR (default: dra-driver-numa/rig in the user's cache folder).
Exit status: 0 done, 1 not possible, 2 wrong usage or bad input.
`

// usageError is a mistake of the caller: exit status 2.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: error: %v\n", err)
		code = 1
		if errors.As(err, &usageError{}) {
			code = 2
		}
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, usageError{errors.New("no command; see cluster help")}
	}
	commands := map[string]func(context.Context, options) (int, error){
		"up": up, "down": down, "exec": execute, "load": load, "console": console, "monitor": monitor, "path": path, "restart": restart, "qemu": qemu, "proxy": proxy, "machine": machine,
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage)
		return 0, nil
	}
	command, known := commands[args[0]]
	if !known {
		return 2, usageError{fmt.Errorf("unknown command %q; see cluster help", args[0])}
	}
	o, err := parseOptions(args[0], args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(usage)
		return 0, nil
	}
	if err != nil {
		return 2, usageError{err}
	}
	return command(ctx, o)
}
