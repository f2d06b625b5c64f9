package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// push uploads what the registry does not have, and prints the name and digest of each artifact.
// It looks at all names before it uploads anything.
func (r *release) push(ctx context.Context, registry string, stdout io.Writer) error {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return fmt.Errorf("read credentials of docker login: %w", err)
	}
	client := &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache(), Credential: credentials.Credential(store)}
	repositories := map[string]*remote.Repository{}
	for _, a := range r.artifacts {
		repository, err := remote.NewRepository(registry + "/" + a.repository)
		if err != nil {
			return err
		}
		repository.Client = client
		repository.PlainHTTP = onThisMachine(repository.Reference.Host())
		repositories[a.repository] = repository
		if err := a.check(ctx, repository); err != nil {
			return err
		}
	}
	for _, a := range r.artifacts {
		repository := repositories[a.repository]
		if err := oras.CopyGraph(ctx, r.store, repository, a.root, oras.DefaultCopyGraphOptions); err != nil {
			return fmt.Errorf("push %s: %w", a.in(registry), err)
		}
		if a.tag != "" {
			if err := repository.Tag(ctx, a.root, a.tag); err != nil {
				return fmt.Errorf("tag %s: %w", a.in(registry), err)
			}
		}
		fmt.Fprintln(stdout, a.in(registry))
	}
	return nil
}

// in returns the full name of an artifact.
func (a artifact) in(registry string) string {
	name := registry + "/" + a.repository
	if a.tag != "" {
		name += ":" + a.tag
	}
	return name + "@" + a.root.Digest.String()
}

// check fails if the name is that of something else: clusters may already run it.
func (a artifact) check(ctx context.Context, repository *remote.Repository) error {
	if a.tag == "" {
		return nil
	}
	published, err := repository.Resolve(ctx, a.tag)
	switch name := repository.Reference.String() + ":" + a.tag; {
	case errors.Is(err, errdef.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look for %s: %w", name, err)
	case published.Digest != a.root.Digest:
		return fmt.Errorf("push %s: it is published as %s, and would become %s: a version never changes, so give this one another name", name, published.Digest, a.root.Digest)
	}
	return nil
}

// onThisMachine says whether a registry is one for a test, which has no TLS.
func onThisMachine(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
