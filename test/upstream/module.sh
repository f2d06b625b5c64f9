# Functions of compare.sh and onenode.sh: copies of k8s.io/dynamic-resource-allocation, a module
# of Kubernetes, that can be compiled here. They need the variable work, an empty folder outside
# of any repository.
upstream=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
module=k8s.io/dynamic-resource-allocation

# download prints the folder of a module, or nothing if the module is not served.
download() { (cd "$work" && GOFLAGS=-mod=mod go mod download -json "$1" 2>/dev/null | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'); }

# copy_module VERSION NAME... copies the module to folders with these names in $work.
copy_module() {
  local version=$1 from tree
  shift
  printf 'module scratch\n' >"$work/go.mod"
  from=$(download "$module@$version") || true
  [ -n "$from" ] || { echo "$(basename "$0"): error: no $module@$version for $(cd "$work" && go version)" >&2; exit 1; }
  for tree in "$@"; do
    cp -r --no-preserve=mode "$from" "$work/$tree"
  done
}

# replace_missing NAME...: a beta's modules may lack some that they need. Their predecessors are
# enough for the tests.
replace_missing() {
  local need
  for need in $(sed -n 's|^\t\(k8s.io/ktesting\) \(v[^ ]*\).*|\1@\2|p; s|^\t\(sigs.k8s.io/structured-merge-diff/v7\) \(v[^ ]*\).*|\1@\2|p' "$work/$1/go.mod"); do
    [ -z "$(download "$need")" ] || continue
    case $need in
      k8s.io/ktesting@*) # until 1.37 a package of k8s.io/kubernetes
        cp -r --no-preserve=mode "$(download k8s.io/kubernetes@v1.37.1)/test/utils/ktesting" "$work/ktesting"
        find "$work/ktesting" -name '*_test.go' -delete
        grep -rl k8s.io/kubernetes/test/utils/ktesting "$work/ktesting" | xargs sed -i 's|k8s.io/kubernetes/test/utils/ktesting|k8s.io/ktesting|'
        printf 'module k8s.io/ktesting\n\ngo 1.26.0\n' >"$work/ktesting/go.mod"
        cat >"$work/ktesting/withdeadline.go" <<'GO' # new in 1.38
package ktesting

import "time"

func (tCtx TContext) WithDeadline(deadline time.Time, cause string) TContext {
	return tCtx.WithTimeout(time.Until(deadline), cause)
}
GO
        replace k8s.io/ktesting ../ktesting "$@"
        ;;
      *) replace sigs.k8s.io/structured-merge-diff/v7 sigs.k8s.io/structured-merge-diff/v7@v7.0.0 "$@" ;;
    esac
  done
}

# replace MODULE WITH NAME...
replace() {
  local tree
  for tree in "${@:3}"; do
    (cd "$work/$tree" && go mod edit -replace "$1=$2")
  done
}

# build_onenode NAME VERSION FILE compiles the benchmarks of testdata in that copy.
build_onenode() {
  local minor
  minor=$(sed 's/^v\(0\.[0-9]*\)\..*/\1/' <<<"$2")
  mkdir "$work/$1/structured/onenode"
  cp "$upstream/testdata/onenode_test.go" "$upstream/testdata/cases_test.go" "$upstream/testdata/onenode_${minor}_test.go" "$work/$1/structured/onenode/"
  (cd "$work/$1" && go test -vet=off -mod=mod -c -o "$3" ./structured/onenode)
}
