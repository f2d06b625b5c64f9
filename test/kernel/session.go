package kernel

import (
	"bufio"
	"context"
	_ "embed" // session.sh
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

//go:embed session.sh
var sessionScript string

// session is a shell in the observer that runs one script after the other. To start a
// program in a container takes an emulated node seconds: kubelet, runtime, shim and OCI
// runtime all have a part in it. A shell that is there needs none of them.
type session struct {
	requests io.WriteCloser
	answers  *bufio.Reader
	end      context.CancelCauseFunc
	ended    context.Context
}

// newSession starts a session. Stream runs [sessionScript] with the input and the
// output given until its context is done, and returns when the shell has ended.
func newSession(ctx context.Context, stream func(ctx context.Context, stdin io.Reader, stdout io.Writer) error) (*session, error) {
	ended, end := context.WithCancelCause(context.WithoutCancel(ctx))
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	s := &session{requests: requests, answers: bufio.NewReader(answers), end: end, ended: ended}
	go func() {
		err := stream(ended, in, out)
		if err == nil {
			err = errors.New("the shell in the observer has ended")
		}
		end(err)
	}()
	context.AfterFunc(ended, func() { // also while the stream hangs
		in.CloseWithError(context.Cause(ended))
		out.CloseWithError(context.Cause(ended))
	})
	defer context.AfterFunc(ctx, func() { s.close(context.Cause(ctx)) })()
	line, err := s.answers.ReadString('\n')
	if err == nil && line != "ready\n" {
		err = fmt.Errorf("the shell in the observer says %q, want ready", line)
	}
	if err != nil {
		s.close(err)
		return nil, err
	}
	return s, nil
}

// open reports whether the session can run another script.
func (s *session) open() bool { return s != nil && s.ended.Err() == nil }

func (s *session) close(why error) { s.end(why) }

// leave has the shell end by itself, and waits for that until the context is done.
func (s *session) leave(ctx context.Context) {
	_ = s.requests.Close() // of a pipe: it never fails
	select {
	case <-s.ended.Done():
	case <-ctx.Done():
		s.close(context.Cause(ctx))
	}
}

// run runs a script. The session is closed if the context ends before the answer
// is there. A status other than 0 is an error with what the script said.
func (s *session) run(ctx context.Context, script string) (stdout string, err error) {
	stop := context.AfterFunc(ctx, func() { s.close(context.Cause(ctx)) })
	defer stop()
	status, stdout, stderr, err := s.ask(script)
	if err != nil {
		s.close(err)
		return "", context.Cause(s.ended) // the first reason
	}
	if status != 0 {
		return "", fmt.Errorf("exit status %d: %s", status, strings.TrimSpace(stderr))
	}
	return stdout, nil
}

func (s *session) ask(script string) (status int, stdout, stderr string, err error) {
	if _, err := io.WriteString(s.requests, base64.StdEncoding.EncodeToString([]byte(script))+"\n"); err != nil {
		return 0, "", "", err
	}
	line, err := s.answers.ReadString('\n')
	if err != nil {
		return 0, "", "", err
	}
	var outBytes, errBytes int
	if _, err := fmt.Sscanf(line, "%d %d %d\n", &status, &outBytes, &errBytes); err != nil {
		return 0, "", "", fmt.Errorf("parse answer %q of the shell in the observer: %w", line, err)
	}
	text := make([]byte, outBytes+errBytes)
	_, err = io.ReadFull(s.answers, text)
	return status, string(text[:outBytes]), string(text[outBytes:]), err
}

// withArguments is a script that has the arguments $1, $2 and so on.
func withArguments(script string, args []string) string {
	var text strings.Builder
	text.WriteString("set --")
	for _, arg := range args {
		text.WriteString(" '" + strings.ReplaceAll(arg, "'", `'\''`) + "'")
	}
	return text.String() + "\n" + script
}

// sessionCgroup is where the session's processes are. Its weight comes before that
// of all pods, which a pod's own cgroup cannot.
const sessionCgroup = cgroupRoot + "/kernel-observer" // without the name of the driver: see Leftovers

// sessionFolder is in memory: a test may fill the disk of the node.
const sessionFolder = "/dev/shm"

// leaveScript removes it.
const leaveScript = `while read -r pid; do echo "$pid" >"$1/../cgroup.procs"; done <"$1/cgroup.procs"; rmdir "$1"`
