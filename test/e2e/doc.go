// Package e2e tests a cluster with the driver installed, from the outside: pods
// are created through the API server, and what they hold is what the kernel of
// their node says (package kernel). It uses one node that publishes zones, has
// it to itself, and leaves nothing there.
package e2e
