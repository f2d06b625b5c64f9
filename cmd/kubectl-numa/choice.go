package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that knows all its values.
type choice struct {
	value   string
	allowed []string
}

// newChoice has the first as its default.
func newChoice(allowed ...string) *choice { return &choice{allowed[0], allowed} }

// newOption has no default, which is "".
func newOption(allowed ...string) *choice { return &choice{"", allowed} }

// String, Set and Type make it a flag's value.
func (c *choice) String() string { return c.value }

// Type is what the usage text says after the flag's name.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set refuses what is not allowed.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("allowed are %s", strings.Join(c.allowed, ", "))
	}
	c.value = value
	return nil
}

// addTo gives a command the flag, and a shell its values.
func (c *choice) addTo(command *cobra.Command, name, shorthand, usage string) {
	command.Flags().VarP(c, name, shorthand, usage)
	complete(command, name, func(*cobra.Command) []string { return c.allowed })
}

// complete gives a shell the values of a flag.
func complete(command *cobra.Command, flag string, values func(*cobra.Command) []string) {
	err := command.RegisterFlagCompletionFunc(flag, func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(command), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // no such flag, or a second time
	}
}
