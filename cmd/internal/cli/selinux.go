package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Confined adds to an error about a missing permission that SELinux may be the reason: file
// modes do not show it. It returns all other errors as they are, and all of a process that
// SELinux does not confine.
func Confined(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	context, _ := os.ReadFile("/proc/self/attr/current")
	return confined(err, string(context))
}

// confined is Confined for a process with a context as proc_pid_attr(5) has it.
func confined(err error, context string) error {
	kind := typeOf(context)
	if kind == "" || kind == "spc_t" || strings.Contains(kind, "unconfined") {
		return err
	}
	return fmt.Errorf("%w (SELinux may be why: this process has the SELinux type %s, and docs/security.md#selinux says which one it needs)", err, kind)
}

// typeOf returns the type of an SELinux context, which is user:role:type[:level]. It returns
// "" for the text of another security module.
func typeOf(context string) string {
	fields := strings.SplitN(strings.TrimRight(context, "\x00\n"), ":", 4)
	if len(fields) < 3 || !strings.HasSuffix(fields[2], "_t") {
		return ""
	}
	return fields[2]
}
