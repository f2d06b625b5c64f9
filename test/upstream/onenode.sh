#!/bin/bash
# onenode.sh VERSION FILE
#
# Compiles the benchmarks of testdata, which run Kubernetes' allocator on one node, with that
# version of k8s.io/dynamic-resource-allocation, and writes the program to the file.
# Module 0.38 needs Go 1.27: GOTOOLCHAIN=go1.27.1 in the environment.
set -euo pipefail
file=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/module.sh"
copy_module "$1" copy
replace_missing copy
build_onenode copy "$1" "$file"
