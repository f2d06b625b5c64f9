#!/bin/bash
# compare.sh PATCH VERSION [ROUNDS]
#
# Applies a patch of this folder to a copy of k8s.io/dynamic-resource-allocation, a module of
# Kubernetes, of that version. Runs upstream's tests of the allocators and of CEL without and
# with the patch, and shows that the tests that the patch adds fail without the rest of it. Then
# measures the allocator without and with the patch, in turn, on what this driver publishes.
# Module 0.38 needs Go 1.27: GOTOOLCHAIN=go1.27.1 in the environment.
set -euo pipefail
patch=$(realpath "$1")
version=$2
rounds=${3:-15}
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export INPUT=$work/input

echo "# What this driver publishes"
mkdir -p "$INPUT/slices"
cp -r "$here/../../deviceclasses" "$INPUT/classes"
kubectl_numa() {
  (cd "$here/../.." && env -u GOTOOLCHAIN go run ./cmd/kubectl-numa slices --node-name node -o yaml "$@")
}
kubectl_numa --preset rig >"$INPUT/slices/zones.yaml"
kubectl_numa --preset dgx-h100 --config "$here/testdata/nodeconfig.yaml" >"$INPUT/slices/devices.yaml"

# download prints the folder of a module, or nothing if the module is not served.
download() { (cd "$work" && GOFLAGS=-mod=mod go mod download -json "$1" 2>/dev/null | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'); }

module=k8s.io/dynamic-resource-allocation
printf 'module scratch\n' >"$work/go.mod"
from=$(download "$module@$version") || true
[ -n "$from" ] || { echo "compare.sh: error: no $module@$version for $(cd "$work" && go version)" >&2; exit 1; }
cd "$work" # outside of any repository: git would pass over files there
for tree in before after added; do
  cp -r --no-preserve=mode "$from" $tree
done
(cd after && git apply -p5 "$patch")
(cd added && git apply -p5 --include='*/allocatortesting/*' "$patch")

# A beta's modules may lack some that they need. Their predecessors are enough for the tests.
replace() {
  for tree in before after added; do
    (cd $tree && go mod edit -replace "$1=$2")
  done
}
for need in $(sed -n 's|^\t\(k8s.io/ktesting\) \(v[^ ]*\).*|\1@\2|p; s|^\t\(sigs.k8s.io/structured-merge-diff/v7\) \(v[^ ]*\).*|\1@\2|p' before/go.mod); do
  [ -z "$(download "$need")" ] || continue
  case $need in
    k8s.io/ktesting@*) # until 1.37 a package of k8s.io/kubernetes
      cp -r --no-preserve=mode "$(download k8s.io/kubernetes@v1.37.1)/test/utils/ktesting" ktesting
      find ktesting -name '*_test.go' -delete
      grep -rl k8s.io/kubernetes/test/utils/ktesting ktesting | xargs sed -i 's|k8s.io/kubernetes/test/utils/ktesting|k8s.io/ktesting|'
      printf 'module k8s.io/ktesting\n\ngo 1.26.0\n' >ktesting/go.mod
      cat >ktesting/withdeadline.go <<'GO' # new in 1.38
package ktesting

import "time"

func (tCtx TContext) WithDeadline(deadline time.Time, cause string) TContext {
	return tCtx.WithTimeout(time.Until(deadline), cause)
}
GO
      replace k8s.io/ktesting ../ktesting
      ;;
    *) replace sigs.k8s.io/structured-merge-diff/v7 sigs.k8s.io/structured-merge-diff/v7@v7.0.0 ;;
  esac
done

export GOFLAGS="${GOFLAGS:-} -mod=mod"
upstream_tests() {
  (cd "$1" && go test -vet=off -json ./structured/... ./cel/... 2>"../$1.errors" | grep -v '"Action":"output"' >"../$1.json")
}
count() { grep -c "\"Action\":\"$2\".*\"Test\":" "$1.json" || true; }
report() { echo "$1: $(count "$1" pass) tests and subtests passed, $(count "$1" skip) skipped, $(count "$1" fail) failed"; }
for tree in before after; do
  echo "# Upstream's tests $tree the patch"
  passed=true
  upstream_tests $tree || passed=false
  report $tree
  $passed || { cat $tree.errors; sed -n 's/.*"Action":"fail".*"Package":"\([^"]*\)".*"Test":"\([^"]*\)".*/  \1 \2/p' $tree.json; exit 1; }
done
if ! diff -rq before added >/dev/null; then
  echo "# The tests that the patch adds, without the rest of it: these fail"
  upstream_tests added && { echo "compare.sh: error: they pass" >&2; exit 1; }
  sed -n 's/.*"Action":"fail".*"Package":"\([^"]*\)".*"Test":"\([^"]*\)".*/  \1 \2/p' added.json
fi

echo "# Allocate on one node: µs of CPU time, median of $rounds rounds (lower to upper quartile), and allocations"
minor=$(sed 's/^v\(0\.[0-9]*\)\..*/\1/' <<<"$version")
for tree in before after; do
  mkdir $tree/structured/onenode
  cp "$here/testdata/onenode_test.go" "$here/testdata/onenode_${minor}_test.go" $tree/structured/onenode/
  (cd $tree && go test -vet=off -c -o "../$tree.test" ./structured/onenode)
done
run() { GOMAXPROCS=1 "./$1.test" -test.run '^$' -test.bench "^BenchmarkOneNode\$/^$2\$" -test.benchtime "$3"; }
echo '| node and claim | without the patch | with it | allocations without | with |'
echo '|---|---|---|---|---|'
for name in $(run before '.*' 1x | sed -n 's|^BenchmarkOneNode/\([^[:space:]]*\).*|\1|p'); do
  for ((round = 0; round < rounds; round++)); do
    for tree in before after; do
      run $tree "$name" 200x | awk -v tree=$tree '/cpu-ns/ {
        for (i = 1; i < NF; i++) value[$(i + 1)] = $i
        print tree, value["cpu-ns/op"] / 1000, value["allocs/op"]}'
    done
  done | sort -k1,1r -k2,2n | awk -v name="$name" '
    {time[$1, ++n[$1]] = $2; allocations[$1] = $3}
    function at(tree, part) {return time[tree, int((n[tree] - 1) * part + 1.5)]}
    function row(tree) {return sprintf("%.1f (%.1f to %.1f)", at(tree, .5), at(tree, .25), at(tree, .75))}
    END {printf "| %s | %s | %s | %d | %d |\n", name, row("before"), row("after"), allocations["before"], allocations["after"]}'
done
