// Command push uploads the files of a release to a container registry: the images as one index,
// the chart as Helm pulls it, and all other files as an artifact. It decides where they go, and
// changes nothing of them: the same files have the same digests. What is published stays as it
// is: a name that leads to something else is an error. It has a module of its own, because no other
// part needs the library of registries.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
)

const usage = `usage: push FOLDER VERSION REGISTRY
FOLDER is what make release VERSION=VERSION has written. REGISTRY is such as registry.example/team, without a scheme. Credentials
are those of docker login. A registry on this machine (localhost, 127.0.0.1) is without TLS.`

// registryFormat is a host, with or without a port, and a path.
var registryFormat = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`)

func main() {
	if len(os.Args) != 4 || !registryFormat.MatchString(os.Args[3]) {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "push: error: %v\n", err)
		os.Exit(1)
	}
}

// run pushes a release and prints what it has pushed, by name and digest.
func run(ctx context.Context, folder, version, registry string, stdout io.Writer) error {
	r, err := read(ctx, folder, version)
	if err != nil {
		return err
	}
	return r.push(ctx, registry, stdout)
}
