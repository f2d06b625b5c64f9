package logging

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestLevel(t *testing.T) {
	for _, format := range []cli.LogFormat{cli.LogText, cli.LogJSON} {
		for level, allowed := range map[int]bool{-1: false, 0: true, 4: true, 10: true, 11: false} {
			err := (&Options{level, format}).Apply()
			if (err == nil) != allowed {
				t.Errorf("level %d: %v", level, err)
			}
			if !allowed {
				continue
			}
			want := min(level, highest)
			if !klog.V(klog.Level(want)).Enabled() || klog.V(klog.Level(want+1)).Enabled() {
				t.Errorf("level %d is not %d in klog", level, want)
			}
			if logger := klog.FromContext(t.Context()); !logger.V(want).Enabled() || logger.V(want+1).Enabled() {
				t.Errorf("level %d is not %d in a %s logger", level, want, format)
			}
		}
	}
	restore()
}

// logged returns what klog writes in a format.
func logged(t *testing.T, format cli.LogFormat, level int, write func()) string {
	t.Helper()
	klog.LogToStderr(false)
	t.Cleanup(restore)
	var log strings.Builder
	klog.SetOutput(&log)
	if err := (&Options{level, format}).apply(&log); err != nil {
		t.Fatal(err)
	}
	write()
	klog.Flush()
	return log.String()
}

func restore() {
	klog.LogToStderr(true)
	_ = (&Options{Level: 2}).Apply()
}

// entries writes each kind of entry that the daemons and the packages of Kubernetes write.
func entries(t *testing.T) func() {
	return func() {
		logger := klog.FromContext(t.Context())
		logger.Info("Prepared a claim", "claim", klog.KRef("team", "job"), "duration", 3*time.Millisecond, "cpus", cpuset.New(0, 1, 4), "pods", []string{"a", "b"})
		logger.Error(errors.New("no such file"), "Preparing a claim failed", "claimUID", "u")
		logger.Error(nil, "Two\nlines", "text", "of\n\"value\"")
		logger.WithName("slices").WithValues("pool", "node").V(4).Info("Publishing", "zone", 3)
		logger.V(5).Info("Not written")
		klog.InfoS("Started", "socket", klog.KObj(nil))
		klog.ErrorS(errors.New("is busy"), "Stopped", "after", time.Second)
		klog.Warningf("a sentence of %s", "client-go")
		klog.NewStandardLogger("INFO").Print("TLS handshake error")
	}
}

// The keys of the text are those that its entries have, apart from the text itself.
func TestJSONHasTheKeysOfTheText(t *testing.T) {
	written := regexp.MustCompile(`\n([IWE]\d{4} )`).ReplaceAllString(strings.TrimSpace(logged(t, cli.LogText, 4, entries(t))), "\x00$1")
	text := slices.Compact(strings.Split(written, "\x00")) // SetOutput gets what is of two severities twice
	lines := strings.Split(strings.TrimSpace(logged(t, cli.LogJSON, 4, entries(t))), "\n")
	if len(text) != 8 || len(lines) != len(text) {
		t.Fatalf("%d entries of text and %d lines of JSON, want 8:\n%q\n%q", len(text), len(lines), text, lines)
	}
	for i, line := range lines {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, key := range []string{"ts", "caller", "msg"} {
			if entry[key] == nil {
				t.Errorf("%s lacks %s", line, key)
			}
			delete(entry, key)
		}
		delete(entry, "v") // text has no level
		var got, want []string
		for key := range entry {
			got = append(got, key)
		}
		for _, match := range regexp.MustCompile(`(?:^| )(\w+)=`).FindAllStringSubmatch(text[i], -1) {
			want = append(want, match[1])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("keys %q in\n%s\nand %q in\n%s", got, line, want, text[i])
		}
	}
	for i, want := range map[int]string{
		0: `"msg":"Prepared a claim","v":0,"claim":{"name":"job","namespace":"team"},"duration":"3ms","cpus":"0-1,4","pods":["a","b"]}`,
		1: `"msg":"Preparing a claim failed","claimUID":"u","err":"no such file"}`,
		2: `"msg":"Two\nlines","text":"of\n\"value\""}`,
	} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("got %s, want it to end with %s", lines[i], want)
		}
	}
}
