package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
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

const laterProfiles = `apiVersion: dra.numa/v1alpha1
kind: NodeConfig
reservedMemory: 1Mi
profiles:
- nodeSelector: {pool: batch}
  reservedMemory: 2Mi
- nodeSelector: {size: huge}
  reservedCPUs: "9"
`

// newProfiled returns the profiles of a node that has started without labels.
func newProfiled(t *testing.T) (p *profiled, pluginDir string) {
	t.Helper()
	flags, pluginDir := fakeMachine(t)
	base, err := parseFlags(cli.Call{Args: flags}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	config, err := deviceclasses.DecodeNodeConfig([]byte(laterProfiles))
	if err != nil {
		t.Fatal(err)
	}
	return &profiled{base, config, nil}, pluginDir
}

// ends returns why the daemon ends if the node gets labels at some time after the start, and
// when that is; "" if it goes on for a day.
func (p *profiled) ends(ctx context.Context, later map[time.Duration]map[string]string) (why string, after time.Duration, asked int) {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour)
	defer cancel()
	began := time.Now()
	p.follow(ctx, func(context.Context) (map[string]string, error) {
		asked++
		var labels map[string]string
		for _, at := range slices.Sorted(maps.Keys(later)) {
			if time.Since(began) >= at {
				labels = later[at]
			}
		}
		return labels, nil
	}, func(err error) { why = err.Error() })
	return why, time.Since(began), asked
}

// Node feature discovery sets the labels of a node some time after the daemon has started.
func TestLabelsThatComeLaterRestartTheDaemon(t *testing.T) {
	p, pluginDir := newProfiled(t)
	synctest.Test(t, func(t *testing.T) {
		batch := map[string]string{"pool": "batch"}
		why, after, _ := p.ends(t.Context(), map[time.Duration]map[string]string{time.Minute: batch})
		if !strings.Contains(why, "(reservedMemory)") || after > 4*time.Minute {
			t.Errorf("ends after %s because of %q", after, why)
		}
		p.labels = batch // it has started again, and they are gone
		if why, after, _ := p.ends(t.Context(), nil); why == "" || after < restartPause-time.Second || after > 2*restartPause {
			t.Errorf("ends again after %s because of %q, want at least %s", after, why, restartPause)
		}
		files.Write(t, filepath.Join(pluginDir, restartFile), "damaged")
		if why, after, _ := p.ends(t.Context(), nil); why == "" || after > time.Minute {
			t.Errorf("with a damaged file: ends after %s because of %q", after, why)
		}
	})
}

func TestLabelsThatChangeNothingAreNoReasonToRestart(t *testing.T) {
	p, _ := newProfiled(t)
	synctest.Test(t, func(t *testing.T) {
		for name, labels := range map[string]map[string]string{
			"other labels":                        {"pool": "web"},
			"settings that the machine cannot do": {"size": "huge"},
		} {
			why, _, asked := p.ends(t.Context(), map[time.Duration]map[string]string{0: labels})
			if why != "" || asked < 20 || asked > 40 {
				t.Errorf("%s: ends because of %q, after %d questions in a day", name, why, asked)
			}
		}
	})
}

func TestStateSaysWhichProfilesAreStale(t *testing.T) {
	p, pluginDir := newProfiled(t)
	p.labels = map[string]string{"pool": "batch"}
	if got := p.profilesState(); len(got.Stale) > 0 {
		t.Errorf("before the first start: %q is stale", got.Stale)
	}
	for text, want := range map[string][]string{"{}": {"reservedMemory"}, `{"pool": "batch", "a": "b"}`: nil} {
		files.Write(t, filepath.Join(pluginDir, labelsFile), text)
		if got := p.profilesState().Stale; !slices.Equal(got, want) {
			t.Errorf("started with the labels %s: %q is stale, want %q", text, got, want)
		}
	}
}
