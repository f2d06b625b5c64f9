package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// addTranslation adds the flags that say how pods for static managers get claims. The names
// begin with the prefix.
func addTranslation(flags *flag.FlagSet, prefix string, o *translate.Options) {
	*o = translate.Options{
		Scope: translate.ScopeContainer, Policy: translate.PolicySingleNUMANode, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: 2, CPULimit: translate.CPULimitKeep,
	}
	choice(flags, prefix+"scope", "`scope` within which CPUs are at one place, as topologyManagerScope of the kubelet", &o.Scope, translate.ScopeContainer, translate.ScopePod)
	choice(flags, prefix+"policy", "`policy` of where that is, as topologyManagerPolicy of the kubelet", &o.Policy,
		translate.PolicySingleNUMANode, translate.PolicyRestricted, translate.PolicyBestEffort, translate.PolicyNone)
	choice(flags, prefix+"part-of-core", "`what` happens to CPUs that are no whole cores: 3 become 4, or the pod gets no claim", &o.PartOfCore,
		translate.PartOfCoreRound, translate.PartOfCoreLeave)
	choice(flags, prefix+"cpu-limit", "`what` happens to limits of containers with CPUs of their own; without them, the pod is Burstable", &o.CPULimit,
		translate.CPULimitKeep, translate.CPULimitLift)
	flags.Func(prefix+"threads-per-core", "`number` of CPUs of a core (default 2)", func(text string) error {
		threads, err := strconv.ParseInt(text, 10, 32)
		if err != nil || threads < 1 {
			return errors.New("want 1 or more")
		}
		o.ThreadsPerCore = threads
		return nil
	})
	flags.Func(prefix+"twins", "`list` of extended resources and the DeviceClasses in their place, such as vendor.com/gpu=gpu.vendor.com; classes with extendedResourceName need not be listed", func(list string) (err error) {
		o.Twins, err = translate.ParseTwins(list)
		return err
	})
}

// choice adds a flag with one of some values. The value has the default.
func choice(flags *flag.FlagSet, name, usage string, value *string, allowed ...string) {
	text := fmt.Sprintf("%s: %s (default %q)", usage, strings.Join(allowed, ", "), *value)
	flags.Func(name, text, func(given string) error {
		if !slices.Contains(allowed, given) {
			return fmt.Errorf("allowed are %s", strings.Join(allowed, ", "))
		}
		*value = given
		return nil
	})
}
