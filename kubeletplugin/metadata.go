package kubeletplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// The kubelet helper writes the device metadata that containers can read (KEP-5304):
// one file and one CDI spec for each request of a claim.
const (
	metadataFolder = "dra-device-metadata"      // in the plugin directory: <namespace>_<claim>/<request>/metadata.json
	metadataPrefix = driver.Name + "_metadata_" // in the CDI directory: <prefix><claim uid>_<request>.json
	metadataTemp   = "." + metadataPrefix       // of a file that is only half written
)

// RemoveStaleMetadata removes the metadata of claims that are no longer used on the
// node. Such claims were never unprepared, or were unprepared while no daemon ran. Call
// it between Recover and Start. A claim with only admin access has no grant, so
// RemoveStaleMetadata asks the API server about claims without a grant. If the API
// server does not answer, these claims keep their metadata.
func RemoveStaleMetadata(ctx context.Context, client kubernetes.Interface, nodeName, pluginDir, cdiDir string, grants []ledger.Grant) error {
	specs, err := os.OpenRoot(cdiDir)
	if err != nil {
		return err
	}
	defer specs.Close()
	files, err := listMetadata(specs.FS(), filepath.Join(pluginDir, metadataFolder))
	if err != nil {
		return err
	}
	used := make(map[string]bool) // folders
	var problems []error
	for _, file := range files {
		inUse, err := file.inUse(ctx, client, nodeName, grants)
		if err == nil && !inUse {
			err = specs.Remove(file.spec)
		} else {
			used[file.folder] = true
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(append(problems, removeFolders(pluginDir, used))...)
}

// removeFolders removes all folders of metadata except those in used.
func removeFolders(pluginDir string, used map[string]bool) error {
	state, err := os.OpenRoot(pluginDir)
	if err != nil {
		return err
	}
	defer state.Close()
	folders, err := fs.ReadDir(state.FS(), metadataFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range folders {
		if !used[folder.Name()] {
			err = errors.Join(err, state.RemoveAll(path.Join(metadataFolder, folder.Name())))
		}
	}
	return err
}

// metadataFile is a CDI spec that mounts metadata.
type metadataFile struct {
	spec     string // name of the file
	claimUID types.UID
	folder   string // of the metadata, in metadataFolder; "" if the spec mounts none
	claim    types.NamespacedName
}

// listMetadata lists the CDI specs of metadata, also half-written ones. Folder is the
// path of metadataFolder on the host.
func listMetadata(specs fs.FS, folder string) (files []metadataFile, err error) {
	entries, err := fs.ReadDir(specs, ".")
	for _, entry := range entries {
		rest, complete := strings.CutPrefix(entry.Name(), metadataPrefix)
		if !complete && !strings.HasPrefix(entry.Name(), metadataTemp) {
			continue
		}
		file := metadataFile{spec: entry.Name()}
		if complete {
			uid, _, _ := strings.Cut(rest, "_")
			file.claimUID = types.UID(uid)
			file.folder = mountedFolder(specs, entry.Name(), folder)
			file.claim.Namespace, file.claim.Name, _ = strings.Cut(file.folder, "_") // a namespace has no underscore
		}
		files = append(files, file)
	}
	return files, err
}

// mountedFolder returns the name of the folder in below from which the spec mounts a
// file. It returns "" if the spec mounts nothing from there.
func mountedFolder(specs fs.FS, name, below string) string {
	text, err := fs.ReadFile(specs, name)
	var spec struct {
		Devices []struct {
			ContainerEdits struct {
				Mounts []struct {
					HostPath string `json:"hostPath"`
				} `json:"mounts"`
			} `json:"containerEdits"`
		} `json:"devices"`
	}
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return ""
	}
	for _, device := range spec.Devices {
		for _, mount := range device.ContainerEdits.Mounts {
			if inside, ok := strings.CutPrefix(mount.HostPath, below+"/"); ok {
				folder, _, _ := strings.Cut(inside, "/")
				return folder
			}
		}
	}
	return ""
}

func (f metadataFile) inUse(ctx context.Context, client kubernetes.Interface, nodeName string, grants []ledger.Grant) (bool, error) {
	if f.folder == "" {
		return false, nil
	}
	if slices.ContainsFunc(grants, func(grant ledger.Grant) bool { return grant.UID == f.claimUID }) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	claim, err := claimWith(ctx, client, f.claim, f.claimUID)
	if err != nil {
		return true, fmt.Errorf("read claim %s of CDI spec %s: %w", f.claim, f.spec, err)
	}
	if claim == nil {
		return false, nil
	}
	allocation := claim.Status.Allocation
	return allocation != nil && slices.ContainsFunc(allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
		return r.Driver == driver.Name && r.Pool == nodeName
	}), nil
}

// RemoveAllMetadata removes the CDI specs of all metadata, also half-written ones. The files
// that they mount are in the plugin directory. No container of a claim may run.
func RemoveAllMetadata(specs *os.Root) error {
	return removeSpecs(specs, func(metadataFile) bool { return true })
}

// removeSpecsOf removes the CDI specs of the metadata of claims that nobody has unprepared. What
// they mount stays until the daemon starts again: another claim of the same name may have it.
func removeSpecsOf(claims []types.UID, cdiDir string) error {
	if len(claims) == 0 {
		return nil
	}
	specs, err := os.OpenRoot(cdiDir)
	if err != nil {
		return err
	}
	defer specs.Close()
	return removeSpecs(specs, func(file metadataFile) bool { return slices.Contains(claims, file.claimUID) })
}

func removeSpecs(specs *os.Root, unused func(metadataFile) bool) error {
	files, err := listMetadata(specs.FS(), "")
	for _, file := range files {
		if !unused(file) {
			continue
		}
		if removed := specs.Remove(file.spec); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// metadataOf returns what containers can read about a device. A device with admin
// access has no share.
func metadataOf(device driver.PreparedDevice) *helper.DeviceMetadata {
	metadata := &helper.DeviceMetadata{Attributes: device.Attributes}
	if device.Share != nil {
		metadata.NetworkData = networkOf(*device.Share)
	}
	return metadata
}

func kubeletDevices(prepared []driver.PreparedDevice) []helper.Device {
	devices := make([]helper.Device, 0, len(prepared))
	for _, device := range prepared {
		devices = append(devices, helper.Device{
			Requests:     []string{device.Request},
			PoolName:     device.Pool,
			DeviceName:   device.Device,
			CDIDeviceIDs: device.CDIDeviceIDs,
			ShareID:      device.ShareID,
			Metadata:     metadataOf(device),
		})
	}
	return devices
}
