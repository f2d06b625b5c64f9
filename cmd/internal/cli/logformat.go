package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"time"
)

// LogFormat is how a program writes log entries. It is the value of a flag.
type LogFormat string

// The formats: a line of text for each entry, or a line with an object.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// AddFlag adds the flag --logging-format.
func (f *LogFormat) AddFlag(flags *flag.FlagSet) {
	*f = LogText
	flags.Var(f, "logging-format", "`format` of log entries: text, or json, which is one object in each line")
}

// String returns the format as users write it.
func (f *LogFormat) String() string { return string(*f) }

// Set takes a format as users write it.
func (f *LogFormat) Set(value string) error {
	if format := LogFormat(value); format != LogText && format != LogJSON {
		return fmt.Errorf("allowed are %s and %s", LogText, LogJSON)
	}
	*f = LogFormat(value)
	return nil
}

// Line returns the log entry of a program without klog, with its newline. Its keys in JSON are
// those of Kubernetes, where ts is in milliseconds.
func (f *LogFormat) Line(now time.Time, program, message string) string {
	if *f != LogJSON {
		return fmt.Sprintf("%s %s: %s\n", now.UTC().Format(time.RFC3339), program, message)
	}
	line, err := json.Marshal(struct {
		Time    int64  `json:"ts"`
		Message string `json:"msg"`
		Level   int    `json:"v"`
	}{now.UnixMilli(), message, 0})
	if err != nil {
		panic(err) // numbers and strings are always JSON
	}
	return string(line) + "\n"
}
