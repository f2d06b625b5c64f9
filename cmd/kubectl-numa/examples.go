package main

import "strings"

// examples indents the lines of an example, and puts the name of the program before
// each command. Lines that begin with # are comments.
func (c cli) examples(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "#") {
			line = c.name + " " + line
		}
		lines = append(lines, "  "+line)
	}
	return strings.Join(lines, "\n")
}
