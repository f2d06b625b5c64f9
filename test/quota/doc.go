// Package quota tests that a claim is bound by the requests of its pods, where the webhook
// enforces it: what the scheduler's allocator gives on a random node is never more than
// what an accepted pod requests. The package has no goroutines, so make unit runs it
// without the race detector.
package quota
