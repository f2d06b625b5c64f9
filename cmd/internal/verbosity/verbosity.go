// Package verbosity is the flag -v of the daemons, and how much klog logs then. It is no part
// of package cli, because the hook does not import klog.
package verbosity

import (
	"flag"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// highest is the highest level that klog gets. From level 8, client-go logs the bodies of
// requests and answers, such as a Secret with a key.
const highest = 7

// Add adds the flag -v. Pass its value to Set.
func Add(flags *flag.FlagSet, level *int) {
	flags.IntVar(level, "v", 2, "log verbosity, 0 to 10; 8 to 10 log the same as 7, because client-go would log whole objects, also Secrets")
}

// Set sets the log level of klog: 0 to 10, where 8 to 10 mean 7.
func Set(level int) error {
	if level < 0 || level > 10 {
		return cli.Usagef("-v %d: allowed are 0 to 10", level)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(min(level, highest)))
}
