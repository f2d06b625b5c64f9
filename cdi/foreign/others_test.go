package foreign

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// nvidia is cut from what nvidia-ctk generates, amd from amd-ctk.
const (
	nvidia = `cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits: {deviceNodes: [{path: /dev/nvidiactl}], hooks: [{hookName: createContainer, path: /usr/bin/nvidia-ctk}]}
devices:
- name: "0"
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}, {path: /dev/dri/card1}, {path: /dev/dri/renderD128}]}
- name: GPU-1111
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}, {path: /dev/dri/card1}, {path: /dev/dri/renderD128}]}
- name: GPU-2222
  containerEdits: {deviceNodes: [{path: /dev/nvidia1}, {path: /dev/dri/card2}, {path: /dev/dri/renderD129}]}
- name: all
  containerEdits: {deviceNodes: [{path: /dev/dri/card1}, {path: /dev/dri/card2}]}
`
	amd = `{"cdiVersion":"0.6.0","kind":"amd.com/gpu","devices":[
{"name":"all","containerEdits":{"deviceNodes":[{"path":"/dev/kfd"},{"path":"/dev/dri/card1"},{"path":"/dev/dri/card2"}]}},
{"name":"1","containerEdits":{"deviceNodes":[{"path":"/dev/kfd"},{"path":"/dev/dri/other","hostPath":"/dev/dri/card2"}]}},
{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/kfd"},{"path":"/dev/dri/card1"}]}}]}`
	ours = `{"cdiVersion":"0.6.0","kind":"dra.numa/claim","devices":[
{"name":"uid_r_gpu","containerEdits":{"deviceNodes":[{"path":"/dev/dri/card1"}]}}]}`
	byName = `{"cdiVersion":"0.6.0","kind":"example.com/nic","devices":[
{"name":"0000:3b:00.0","containerEdits":{"env":["A=B"]}}]}`
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestTheDeviceOfAFunctionIsFound(t *testing.T) {
	card1 := Function{Names: []string{"0000:3b:00.0"}, Nodes: []string{"/dev/dri/card1", "/dev/dri/renderD128"}}
	withUUID := card1
	withUUID.Names = []string{"0000:3b:00.0", "GPU-1111"}
	foreign := func(path string) bool {
		return strings.HasPrefix(path, "/dev/dri/") && !slices.Contains(card1.Nodes, path)
	}
	for name, row := range map[string]struct {
		function Function
		static   fstest.MapFS
		want     string
	}{
		"nothing there":          {card1, nil, ""},
		"by nodes":               {card1, fstest.MapFS{"nvidia.yaml": file(nvidia)}, "nvidia.com/gpu=0"},
		"by UUID":                {withUUID, fstest.MapFS{"nvidia.yaml": file(nvidia)}, "nvidia.com/gpu=GPU-1111"},
		"beside shared nodes":    {card1, fstest.MapFS{"amd.json": file(amd)}, "amd.com/gpu=0"},
		"by address":             {card1, fstest.MapFS{"amd.json": file(amd), "nic.json": file(byName)}, "example.com/nic=0000:3b:00.0"},
		"without nodes":          {Function{Names: card1.Names}, fstest.MapFS{"amd.json": file(amd)}, ""},
		"of a claim":             {card1, fstest.MapFS{"dra.numa-claim_uid.json": file(ours)}, ""},
		"of no spec":             {card1, fstest.MapFS{"amd.txt": file(amd), "amd.json": file(amd[:len(amd)-9])}, ""},
		"too large":              {card1, fstest.MapFS{"amd.json": file(amd + strings.Repeat(" ", maxSpecBytes))}, ""},
		"a folder":               {card1, fstest.MapFS{"amd.json": &fstest.MapFile{Mode: fs.ModeDir}}, ""},
		"of a name nobody takes": {card1, fstest.MapFS{"amd.json": file(strings.ReplaceAll(amd, `"0"`, `"0 0"`))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find([]fs.FS{row.static, fstest.MapFS{}}, row.function, foreign)
			if got != row.want || err != nil {
				t.Errorf("device %q, %v, want %q", got, err, row.want)
			}
		})
	}
}

func TestADirectoryThatIsNotThereHasNoSpecs(t *testing.T) {
	missing, err := fs.Sub(fstest.MapFS{}, "etc/cdi")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Find([]fs.FS{missing}, Function{Names: []string{"x"}}, nil); got != "" || err != nil {
		t.Errorf("%q, %v, want none", got, err)
	}
}

func TestNamesOfDevicesAreChecked(t *testing.T) {
	for id, valid := range map[string]bool{
		"nvidia.com/gpu=0": true, "a/b=0000:3b:00.0": true,
		"": false, "gpu=0": false, "a/b": false, "a/b=": false, "a/b=c d": false, "a/b/c=d": false, "a/b=c\n": false,
	} {
		if err := Validate(id); (err == nil) != valid {
			t.Errorf("%q: %v", id, err)
		}
	}
}
