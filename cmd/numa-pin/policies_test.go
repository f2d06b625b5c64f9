package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

// replace puts a file in place as the kubelet does, whole.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func TestKeeperTellsThePoliciesOfTheKubelet(t *testing.T) {
	host, kubelet, state := fakeHost(t), t.TempDir(), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := runWith(ctx, host, "",
			"keep", "--cgroups="+host.cgroups, "--lock="+state+"/lock", "--records="+state+"/pins", "--kubelet="+kubelet, "--policies="+state)
		ended <- err
	}()
	for _, step := range []struct {
		change func()
		want   keeperfile.Policies
	}{
		{func() {}, keeperfile.Policies{}},
		{func() {
			replace(t, kubelet+"/"+keeperfile.CPUManagerFile, `{"policyName":"none"}`)
			replace(t, kubelet+"/"+keeperfile.MemoryManagerFile, "secret")
		}, keeperfile.Policies{CPU: keeperfile.Policy{Name: "none"}, Memory: keeperfile.Policy{Problem: "not a checkpoint of the kubelet"}}},
		{func() {
			replace(t, kubelet+"/"+keeperfile.CPUManagerFile, `{"policyName":"static"}`)
			if err := os.Remove(kubelet + "/" + keeperfile.MemoryManagerFile); err != nil {
				t.Error(err)
			}
		}, keeperfile.Policies{CPU: keeperfile.Policy{Name: "static"}}},
		{func() { replace(t, state+"/"+keeperfile.PoliciesName, "{}") }, keeperfile.Policies{CPU: keeperfile.Policy{Name: "static"}}},
	} {
		step.change()
		step.want.Boot = "this-boot"
		var got keeperfile.Policies
		var err error
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && (err != nil || got != step.want); time.Sleep(10 * time.Millisecond) {
			got, err = keeperfile.LoadPolicies(os.DirFS(state), "this-boot")
		}
		if err != nil || got != step.want {
			t.Fatalf("the daemon reads %+v, %v, want %+v", got, err, step.want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(state + "/*.new"); err != nil || left != nil {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestPoliciesAreWrittenOnlyIfTheyChange: the daemon looks every five seconds, and nothing
// else should wake it or the disk.
func TestPoliciesAreWrittenOnlyIfTheyChange(t *testing.T) {
	kubelet, state := t.TempDir(), t.TempDir()
	file := kubelet + "/" + keeperfile.CPUManagerFile
	replace(t, file, `{"policyName":"none","checksum":1}`)
	copies := func() os.FileInfo {
		t.Helper()
		c, err := newCopier(kubelet, state, "boot")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		for range 2 {
			if err := c.copy(); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(state + "/" + keeperfile.PoliciesName)
		if err != nil || info.Mode() != 0o644 {
			t.Fatal(info, err)
		}
		return info
	}
	before := copies()
	replace(t, file, `{"policyName":"none","checksum":2}`)
	if after := copies(); !same(before, after) {
		t.Errorf("written at %s and again at %s", before.ModTime(), after.ModTime())
	}
	replace(t, file, `{"policyName":"static"}`)
	if same(before, copies()) {
		t.Error("another policy is not written")
	}
}
