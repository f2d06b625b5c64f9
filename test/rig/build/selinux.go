package build

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// policyPackages are Debian's policy, what makes it from its modules, what labels files, and
// every library that these programs are linked with.
var policyPackages = []string{
	"selinux-policy-default", "policycoreutils", "libsemanage-common", "libsemanage2", "libsepol2", "selinux-utils", "libselinux1",
	"libaudit1", "libbz2-1.0", "libc6", "libcap-ng0", "libcap2", "libpcre2-8-0",
}

// policyVersion is the newest version of a policy that Linux 6.1 to 7.2 read: a policy of
// systemSuite can be newer (POLICYDB_VERSION_MAX of security/selinux/include/security.h).
const policyVersion = "33"

// policyModule is added to those of the package.
//
//go:embed selinux.cil
var policyModule string

// policyKept is what a node gets: the policy, and the program that labels its disk.
var policyKept = []string{"etc/selinux/default", "usr/sbin/setfiles", "usr/lib/x86_64-linux-gnu/libsepol.so.2"}

// Policy makes Debian's SELinux policy from all of its modules, and returns a folder with
// what a node has of it on its disk. It needs user namespaces, or root.
func (c Cache) Policy(ctx context.Context) (string, error) {
	t := policyThing()
	dir := c.Path(t.name)
	return dir, c.once(ctx, t.name, t.inputs, func() error {
		apt, err := c.apt(ctx, systemSuite)
		if err != nil {
			return err
		}
		root := dir + ".root"
		defer func() { _ = os.RemoveAll(root) }()
		if err := c.fetchPackages(ctx, apt, root, policyPackages); err != nil {
			return err
		}
		if err := trimSystem(root); err != nil {
			return err
		}
		if err := checkLibraries(root); err != nil {
			return err
		}
		if err := c.buildPolicy(ctx, root); err != nil {
			return err
		}
		return keepPolicy(root, dir)
	})
}

// policyThing is the folder of the policy.
func policyThing() thing {
	return thing{"selinux", strings.Join(slices.Concat([]string{systemSuite, policyVersion, policyModule}, policyPackages, policyKept), " ")}
}

// buildPolicy has semodule(8) link the modules of the policy in root, as the script of the
// package does when it is installed.
func (c Cache) buildPolicy(ctx context.Context, root string) error {
	config := "module-store = direct\nexpand-check = 0\npolicy-version = " + policyVersion + "\n"
	if err := os.WriteFile(filepath.Join(root, "etc/selinux/semanage.conf"), []byte(config), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "var/lib/selinux"), 0o755); err != nil {
		return err
	}
	modules, err := filepath.Glob(root + "/usr/share/selinux/default/*.pp.bz2")
	if err != nil || len(modules) == 0 {
		return fmt.Errorf("the package selinux-policy-default of Debian %s has no module of a policy: %w", systemSuite, err)
	}
	for i, module := range modules {
		modules[i] = strings.TrimPrefix(module, root)
	}
	if err := os.WriteFile(filepath.Join(root, "rig.cil"), []byte(policyModule), 0o644); err != nil {
		return err
	}
	modules = append(modules, "/rig.cil")
	args := []string{"--map-root-user", "--root=" + root, "/usr/sbin/semodule", "-n", "-s", "default", "-X", "100", "-i"}
	return c.run(ctx, root, nil, "unshare", append(args, modules...)...)
}

// keepPolicy moves policyKept from root to dir.
func keepPolicy(root, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range policyKept {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(root, name), to); err != nil {
			return err
		}
	}
	return nil
}
