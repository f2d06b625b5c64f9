package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that allows only some values.
type choice struct {
	value   string
	allowed []string
}

// newChoice makes a choice whose default is the first value.
func newChoice(allowed ...string) *choice { return &choice{allowed[0], allowed} }

// newOption makes a choice without a default; its value is "" until the user sets it.
func newOption(allowed ...string) *choice { return &choice{"", allowed} }

// String returns the value. With Set and Type, it makes choice the value of a flag.
func (c *choice) String() string { return c.value }

// Type returns the text after the flag's name in the usage.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set rejects a value that is not allowed.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("allowed are %s", strings.Join(c.allowed, ", "))
	}
	c.value = value
	return nil
}

// addTo adds the flag to a command, and lets shells complete its values.
func (c *choice) addTo(command *cobra.Command, name, shorthand, usage string) {
	command.Flags().VarP(c, name, shorthand, usage)
	complete(command, name, func(*cobra.Command) []string { return c.allowed })
}

// withoutDefault removes "(default [])" from the usage of a flag whose value is a map.
func withoutDefault(command *cobra.Command, flag string) { command.Flags().Lookup(flag).DefValue = "" }

// complete lets shells complete the values of a flag.
func complete(command *cobra.Command, flag string, values func(*cobra.Command) []string) {
	err := command.RegisterFlagCompletionFunc(flag, func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(command), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // there is no such flag, or it is registered twice
	}
}
