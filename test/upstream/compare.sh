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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/module.sh"
export INPUT=$work/input

echo "# What this driver publishes"
mkdir -p "$INPUT/slices"
cp -r "$upstream/../../deviceclasses" "$INPUT/classes"
kubectl_numa() {
  (cd "$upstream/../.." && env -u GOTOOLCHAIN go run ./cmd/kubectl-numa slices --node-name node -o yaml "$@")
}
kubectl_numa --preset rig >"$INPUT/slices/zones.yaml"
kubectl_numa --preset dgx-h100 --config "$upstream/testdata/nodeconfig.yaml" >"$INPUT/slices/devices.yaml"

copy_module "$version" before after added
cd "$work" # outside of any repository: git would pass over files there
(cd after && git apply -p5 "$patch")
(cd added && git apply -p5 --include='*/allocatortesting/*' "$patch")

replace_missing before after added

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
for tree in before after; do
  build_onenode $tree "$version" "$work/$tree.test"
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
