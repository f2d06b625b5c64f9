package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// A node whose API server is away must start: claims end, and containers restart.
func TestLabelsAreRememberedForAnAPIServerThatIsAway(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	const profiles = "reservedMemory: 1Mi\nprofiles:\n- nodeSelector: {pool: batch}\n  reservedMemory: 2Mi\n"
	start := func(kubeconfig string) (options, error) {
		return configured(t, append(flags[:len(flags):len(flags)], "--config="+configFile(t, profiles), "--kubeconfig="+kubeconfig)...)
	}
	away := filepath.Join(t.TempDir(), "kubeconfig")
	files.Write(t, away, "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}")
	if _, err := start(away); err == nil || !strings.Contains(err.Error(), "read labels of node node-1") {
		t.Fatalf("first start without an API server: error %v, want one about the labels", err)
	}
	here, _ := apiServer(t, map[string]string{"pool": "batch"})
	for _, kubeconfig := range []string{here, away} {
		if o, err := start(kubeconfig); err != nil || o.reservedQuantity.Value() != 2<<20 {
			t.Errorf("reserved memory %s, %v, want that of the profile", o.reservedQuantity, err)
		}
	}
	forbidden, _ := apiServer(t, nil)
	if _, err := start(forbidden); err == nil || !strings.Contains(err.Error(), "not for you") {
		t.Errorf("an API server that refuses: error %v, want its answer", err)
	}
	files.Write(t, filepath.Join(pluginDir, labelsFile), "{")
	if _, err := start(away); err == nil || !strings.Contains(err.Error(), labelsFile) {
		t.Errorf("damaged labels: error %v, want one that names the file", err)
	}
}
