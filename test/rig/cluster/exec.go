package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Exec runs a command as root in a node and returns its exit code. Output and errors of
// the command go to out as they come.
func (r *Cluster) Exec(ctx context.Context, n Node, stdin io.Reader, out io.Writer, args ...string) (code int, err error) {
	u := url.URL{
		Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", n.AgentPort), Path: "/exec",
		RawQuery: url.Values{"arg": args}.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), stdin)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Rig-Token", r.Token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("run %q in node %s: %w", args, n.Name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("run %q in node %s: %s", args, n.Name, answer.Status)
	}
	if _, err := io.Copy(out, answer.Body); err != nil {
		return 0, fmt.Errorf("run %q in node %s: %w", args, n.Name, err)
	}
	return strconv.Atoi(answer.Trailer.Get("Rig-Exit"))
}

// LoadImage imports an image archive into the container runtime of every node.
func (r *Cluster) LoadImage(ctx context.Context, archive string) error {
	for _, n := range r.Nodes {
		file, err := os.Open(archive)
		if err != nil {
			return err
		}
		var out strings.Builder
		code, err := r.Exec(ctx, n, file, &out, "/etc/rig/load")
		_ = file.Close()
		if err != nil {
			return err
		}
		if code != 0 {
			return fmt.Errorf("import %s into node %s: it exits with %d: %s", archive, n.Name, code, strings.TrimSpace(out.String()))
		}
	}
	return nil
}
