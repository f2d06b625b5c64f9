// Package scheduler compares what kubectl numa simulate says with what the scheduler of a
// running control plane does. Nobody runs pods there: the nodes are objects.
package scheduler
