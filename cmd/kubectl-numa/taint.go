package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// tainting is the command taint with its flags.
type tainting struct {
	cli
	from       source
	key, value string
	effect     *choice
	version    *choice
	output     *printer
}

func taintCommand(c cli, command *cobra.Command) runner {
	t := tainting{
		cli:     c,
		effect:  newChoice(string(resourceapi.DeviceTaintEffectNoSchedule), string(resourceapi.DeviceTaintEffectNoExecute), string(resourceapi.DeviceTaintEffectNone)),
		version: newOption("v1", "v1beta2", "v1alpha3"),
		output:  newPrinter(manifestFormats()...),
	}
	t.from.addTo(command)
	flags := command.Flags()
	flags.StringVar(&t.key, "key", deviceclasses.TaintDrain, "`key` of the taint")
	flags.StringVar(&t.value, "value", "", "`value` of the taint (default: none)")
	t.effect.addTo(command, "effect", "", "what the taint does")
	t.version.addTo(command, "api-version", "", "version of resource.k8s.io (default: the one that the cluster serves, else v1)")
	t.output.addTo(command)
	command.ValidArgsFunction = t.from.completion(func(objects *snapshot.Snapshot, _ []string) []string { return deviceNames(objects) })
	return t.run
}

// deviceName identifies a device.
type deviceName struct{ driver, pool, device string }

// String returns the name as users write it.
func (d deviceName) String() string {
	if d.driver == deviceclasses.DriverName {
		return d.pool + "/" + d.device
	}
	return d.driver + "/" + d.pool + "/" + d.device
}

// parseDevice reads POOL/DEVICE of this driver, or DRIVER/POOL/DEVICE. The name of a pool
// can have slashes.
func parseDevice(text string) (deviceName, error) {
	parts := strings.Split(text, "/")
	last := len(parts) - 1
	if slices.Contains(parts, "") || last < 1 {
		return deviceName{}, fmt.Errorf("device %q: want NODE/DEVICE or DRIVER/POOL/DEVICE", text)
	}
	if last == 1 {
		return deviceName{deviceclasses.DriverName, parts[0], parts[1]}, nil
	}
	return deviceName{parts[0], strings.Join(parts[1:last], "/"), parts[last]}, nil
}

func (t *tainting) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("no device is named: want NODE/DEVICE or DRIVER/POOL/DEVICE")
	}
	var devices []deviceName
	for _, arg := range args {
		device, err := parseDevice(arg)
		if err != nil {
			return err
		}
		if slices.Contains(devices, device) {
			return fmt.Errorf("device %q is named twice", arg)
		}
		devices = append(devices, device)
	}
	objects, err := t.from.Snapshot(ctx)
	if err != nil {
		return err
	}
	var rules []manifest.Object
	for _, device := range devices {
		if err := t.exists(objects, device); err != nil {
			return err
		}
		rule, err := manifest.TaintRule(manifest.Device{Driver: device.driver, Pool: device.pool, Name: device.device}, t.taint())
		if err != nil {
			return err
		}
		rule.APIVersion = resourceapi.GroupName + "/" + t.apiVersion(objects)
		rules = append(rules, rule)
	}
	if err := t.output.print(t.stdout, manifests("rule", rules...)); err != nil {
		return err
	}
	t.noteUsers(objects, devices)
	if objects.RuleVersion == snapshot.NotServed {
		t.note("the cluster serves no DeviceTaintRules, so it does not accept the rule: an administrator has to switch them on")
	}
	return nil
}

// apiVersion returns the version of the rule: the one that the user wants, else the one
// that the cluster serves.
func (t *tainting) apiVersion(objects *snapshot.Snapshot) string {
	served := objects.RuleVersion
	if served == snapshot.NotServed {
		served = ""
	}
	return cmp.Or(t.version.value, served, resourceapi.SchemeGroupVersion.Version)
}

func (t *tainting) taint() resourceapi.DeviceTaint {
	return resourceapi.DeviceTaint{Key: t.key, Value: t.value, Effect: resourceapi.DeviceTaintEffect(t.effect.value)}
}

// exists refuses a device that is neither published nor allocated: the rule would do
// nothing, perhaps because of a typing error.
func (t *tainting) exists(objects *snapshot.Snapshot, device deviceName) error {
	known := deviceNames(objects)
	if slices.Contains(known, device.String()) || len(usersOf(objects, []deviceName{device})) > 0 {
		return nil
	}
	err := fmt.Errorf("there is no device %s in %s", device, &t.from)
	var siblings []string
	for _, name := range known {
		if strings.HasPrefix(name, strings.TrimSuffix(device.String(), device.device)) {
			siblings = append(siblings, name)
		}
	}
	if len(siblings) == 0 {
		return &hintedError{err, []string{"run " + t.name + " status to see the devices of each node"}}
	}
	return &hintedError{err, []string{"the pool has " + strings.Join(siblings, ", ")}}
}

// deviceNames returns the published devices, sorted.
func deviceNames(objects *snapshot.Snapshot) (names []string) {
	for _, slice := range objects.Slices {
		for i := range slice.Spec.Devices {
			names = append(names, deviceName{slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name}.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// usersOf returns the pods with a claim that has one of the devices, sorted.
func usersOf(objects *snapshot.Snapshot, devices []deviceName) (pods []string) {
	for _, claim := range objects.Claims {
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
			return slices.Contains(devices, deviceName{result.Driver, result.Pool, result.Device})
		}) {
			continue
		}
		for _, user := range claim.Status.ReservedFor {
			pods = append(pods, claim.Namespace+"/"+user.Name)
		}
	}
	slices.Sort(pods)
	return slices.Compact(pods)
}

// noteUsers says what the rules mean for the pods that use the devices now.
func (t *tainting) noteUsers(objects *snapshot.Snapshot, devices []deviceName) {
	users := usersOf(objects, devices)
	if len(users) == 0 {
		return
	}
	what := "these pods use the devices and keep running"
	if t.effect.value == string(resourceapi.DeviceTaintEffectNoExecute) {
		what = "Kubernetes will delete these pods, unless their claims tolerate the taint"
	}
	t.note("%s: %s", what, strings.Join(users, ", "))
}
