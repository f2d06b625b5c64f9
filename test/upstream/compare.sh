#!/bin/bash
# Applies a patch of docs/upstream to a copy of the Kubernetes module that this repository
# uses, runs the tests of the changed package, and prints its benchmark without and with the
# change, in turn.
set -euo pipefail
patch=$(realpath "$1")
benchmark=$2
rounds=${3:-10}
module=k8s.io/dynamic-resource-allocation
from=$(go list -m -f '{{.Dir}}' "$module")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tree in before after; do
  cp -r "$from" "$work/$tree"
  chmod -R u+w "$work/$tree"
done
cd "$work" # outside of any repository: git would pass over files there
(cd after && git apply -p5 "$patch")
(cd before && git apply -p5 --include='*_test.go' "$patch")
export GOFLAGS=-mod=mod
for tree in before after; do
  (cd "$tree" && go test ./cel && go test -c -o ../"$tree".test ./cel)
done
for ((round = 0; round < rounds; round++)); do
  for tree in before after; do
    ./"$tree".test -test.run '^$' -test.bench "$benchmark" -test.benchmem | sed -n "s|^Benchmark|$tree Benchmark|p"
  done
done
