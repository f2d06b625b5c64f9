// Package logging has the flags of the daemons that say how much klog logs, and in which
// format. It is no part of package cli, because the hook does not import klog.
package logging

import (
	"flag"
	"io"
	"os"
	"strconv"

	logsapi "k8s.io/component-base/logs/api/v1"
	logsjson "k8s.io/component-base/logs/json"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// highest is the highest level that klog gets. From level 8, client-go logs the bodies of
// requests and answers, such as a Secret with a key.
const highest = 7

// Options are the values of the flags.
type Options struct {
	Level  int
	Format cli.LogFormat
}

// AddFlags adds the flags -v and --logging-format. Call Apply when they are parsed.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.IntVar(&o.Level, "v", 2, "log verbosity, 0 to 10; 8 to 10 log the same as 7, because client-go would log whole objects, also Secrets")
	o.Format.AddFlag(flags)
}

// Apply sets the level of klog, which is 0 to 10, where 8 to 10 mean 7, and its format.
func (o *Options) Apply() error { return o.apply(os.Stderr) }

// apply has klog write JSON to a writer. Text goes where klog writes it.
func (o *Options) apply(json io.Writer) error {
	if o.Level < 0 || o.Level > 10 {
		return cli.Usagef("-v %d: allowed are 0 to 10", o.Level)
	}
	level := min(o.Level, highest)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", strconv.Itoa(level)); err != nil {
		return err
	}
	if o.Format != cli.LogJSON {
		klog.ClearLogger()
		return nil
	}
	logger, control := logsjson.Factory{}.Create(
		logsapi.LoggingConfiguration{Verbosity: logsapi.VerbosityLevel(level)}, logsapi.LoggingOptions{ErrorStream: json})
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true), klog.FlushLogger(control.Flush))
	return nil
}
