// Package version says of which version of the module a program was built. It reads
// nothing but the program itself.
package version

import "runtime/debug"

// Unknown is the version of a program that was built without one. The chart's
// appVersion has the same default.
const Unknown = "dev"

// linked is set by the linker; see VERSION in the Makefile.
var linked string

// String returns the version that the build was given, else the version of the module
// as "go install" knows it, such as v0.1.0, else Unknown.
func String() string {
	if linked != "" {
		return linked
	}
	if info, found := debug.ReadBuildInfo(); found && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return Unknown
}
