package kernel

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// localSession runs the session's shell on this machine.
func localSession(t *testing.T, folder string) *session {
	t.Helper()
	s, err := newSession(t.Context(), func(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
		shell := exec.CommandContext(ctx, "/bin/sh", "-c", sessionScript, "observer", folder+"/cgroup", folder)
		shell.Stdin, shell.Stdout, shell.WaitDelay = stdin, stdout, time.Second
		return shell.Run()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(errors.New("the test is done")) })
	return s
}

func TestSessionRunsOneScriptAfterTheOther(t *testing.T) {
	s := localSession(t, t.TempDir())
	for script, want := range map[string]string{
		`echo one; echo two`:                     "one\ntwo\n",
		`printf 'no end of line'`:                "no end of line",
		`printf '\0 \n\n'`:                       "\x00 \n\n",
		`:`:                                      "",
		`echo dropped >&2; echo out`:             "out\n",
		`cat; echo no input`:                     "no input\n",
		`exec echo the shell is another process`: "the shell is another process\n",
		withArguments(`echo "$#:$1:$2"`, []string{"a'b", `$HOME "*"`}): `2:a'b:$HOME "*"` + "\n",
		`head -c 300000 /dev/zero | tr '\0' x`:                         strings.Repeat("x", 300_000),
	} {
		got, err := s.run(t.Context(), script)
		if err != nil || got != want {
			t.Errorf("run %q = %.80q, %v; want %.80q", script, got, err, want)
		}
	}
}

func TestSessionOutlivesAScriptThatFails(t *testing.T) {
	s := localSession(t, t.TempDir())
	_, err := s.run(t.Context(), `echo out; echo the reason >&2; exit 3`)
	if want := "exit status 3: the reason"; err == nil || err.Error() != want {
		t.Errorf("run = %v, want %s", err, want)
	}
	if got, err := s.run(t.Context(), `echo there`); got != "there\n" || err != nil {
		t.Errorf("run after a failure = %q, %v", got, err)
	}
}

func TestSessionEndsWithAScriptThatDoesNotAnswer(t *testing.T) {
	s := localSession(t, t.TempDir())
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	if _, err := s.run(ctx, `sleep 60`); !errors.Is(err, late) {
		t.Errorf("run = %v, want %v", err, late)
	}
	if s.open() {
		t.Error("the session is open: the next answer would be that of the script before")
	}
}

func TestSessionLeavesNoFiles(t *testing.T) {
	folder := t.TempDir()
	s := localSession(t, folder)
	if _, err := s.run(t.Context(), `echo here`); err != nil {
		t.Fatal(err)
	}
	s.leave(t.Context())
	if left, err := filepath.Glob(folder + "/dra-numa-observer-*"); len(left) > 0 || err != nil {
		t.Errorf("files %q, %v", left, err)
	}
}

func TestSessionSaysWhyItDoesNotStart(t *testing.T) {
	gone := errors.New("no such pod")
	if _, err := newSession(t.Context(), func(context.Context, io.Reader, io.Writer) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("newSession = %v, want %v", err, gone)
	}
	_, err := newSession(t.Context(), func(_ context.Context, _ io.Reader, stdout io.Writer) error {
		_, err := io.WriteString(stdout, "sh: not found\n")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "sh: not found") {
		t.Errorf("newSession = %v, want what the shell said", err)
	}
}
