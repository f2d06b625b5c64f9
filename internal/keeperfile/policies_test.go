package keeperfile

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

const boot = "boot-1"

func TestPolicyOfACheckpoint(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want Policy
	}{
		"none":              {`{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`, Policy{Name: "none"}},
		"none since 1.37":   {`{"policyName":"none","checksum":1,"data":"{\"policyName\":\"none\",\"defaultCpuSet\":\"\"}","dataChecksum":2}`, Policy{Name: "none"}},
		"static since 1.37": {`{"checksum":1,"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0-7\"}","dataChecksum":2}`, Policy{Name: "static"}},
		"memory":            {`{"policyName":"BestEffort","machineState":{"0":{"numberOfAssignments":0}},"checksum":1}`, Policy{Name: "BestEffort"}},
		"torn":              {`{"policyNa`, Policy{Problem: "not a checkpoint of the kubelet"}},
		"a number":          {`{"policyName":5}`, Policy{Problem: "not a checkpoint of the kubelet"}},
		"torn data":         {`{"data":"{"}`, Policy{Problem: "its field data is not a checkpoint of the kubelet"}},
		"no policy":         {"{}", Policy{Problem: "no policyName"}},
		"empty file":        {"", Policy{Problem: "not a checkpoint of the kubelet"}},
		"a secret":          {"secret", Policy{Problem: "not a checkpoint of the kubelet"}},
		"a secret as name":  {`{"policyName":"s3cret"}`, Policy{Problem: "policyName is not a word of at most 32 letters"}},
		"a long name":       {`{"policyName":"` + strings.Repeat("a", 33) + `"}`, Policy{Problem: "policyName is not a word of at most 32 letters"}},
		"too long":          {`{"policyName":"none"}` + strings.Repeat(" ", stateBytes), Policy{Problem: "more than 4194304 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadPolicies(fstest.MapFS{CPUManagerFile: {Data: []byte(row.text)}}, boot)
			if want := (Policies{Boot: boot, CPU: row.want}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if strings.Contains(string(got.Encode()), "s3cret") {
				t.Errorf("passed on: %s", got.Encode())
			}
		})
	}
	linked := fstest.MapFS{MemoryManagerFile: {Data: []byte("secret"), Mode: fs.ModeSymlink}, "secret": {Data: []byte(`{"policyName":"none"}`)}}
	if got := ReadPolicies(linked, boot).Memory; got != (Policy{Problem: "not a regular file (L---------)"}) {
		t.Errorf("a link: %+v", got)
	}
}

func TestWhatIsWrittenIsLoaded(t *testing.T) {
	want := Policies{boot, Policy{Name: "static"}, Policy{Problem: "no policyName"}}
	load := func(text []byte) (Policies, error) {
		return LoadPolicies(fstest.MapFS{PoliciesName: {Data: text}}, boot)
	}
	if got, err := load(want.Encode()); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{`{"boot":"boot-0","cpuManager":{"policy":"none"},"memoryManager":{}}`, "", "\x00\x00", `{"boot":`} {
		if got, err := load([]byte(text)); got != (Policies{}) || !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if got, err := load([]byte(`{"version":2,"boot":"boot-1","cpuManager":{"policy":"static","since":1},"memoryManager":{}}`)); got != (Policies{Boot: boot, CPU: Policy{Name: "static"}}) || err != nil {
		t.Errorf("of a newer keeper: %+v, %v", got, err)
	}
	if _, err := LoadPolicies(fstest.MapFS{}, boot); !errors.Is(err, ErrUnknown) {
		t.Errorf("no file: %v", err)
	}
}
