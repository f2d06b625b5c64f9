#!/bin/bash
# Asks the kernels of virtual machines what they answer to the scripts in testdata, and
# compares that with the recordings there; with -update, it records the answers. Arguments
# are kernels and machines, such as 7.2/cache-is-node; without one, it asks all, one after
# the other. Each takes about five minutes.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD root=$(cd ../..; pwd)
update=
if [ "${1:-}" = -update ]; then update=-update; shift; fi
cluster=$root/bin/cluster
[ -x "$cluster" ] || { echo "$cluster does not exist: run make build" >&2; exit 1; }
if [ $# = 0 ]; then
  for kernel in 6.12 7.2; do
    for file in testdata/machines/*.yaml; do set -- "$@" "$kernel/$(basename "$file" .yaml)"; done
  done
fi
work=$(mktemp -d)
finish() { "$cluster" down -name resctrl || true; rm -rf "$work"; }
trap finish EXIT
CGO_ENABLED=0 go test -trimpath -c -o "$work/resctrl.test" .
cp -r testdata "$work"
status=0
for asked; do
  kernel=${asked%%/*} machine=${asked#*/}
  (cd "$root" && "$cluster" up -name resctrl -kernel "$kernel" -topology "$here/testdata/machines/$machine.yaml")
  in_node() { "$cluster" exec -name resctrl -- "$@"; }
  tar -C "$work" -c resctrl.test testdata | in_node sh -c 'mkdir -p /tmp/answers && tar -x -C /tmp/answers'
  in_node sh -c "umount /sys/fs/resctrl; cd /tmp/answers && NUMA_RESCTRL=$machine ./resctrl.test -test.run TestKernelAnswersAsRecorded $update" </dev/null || status=1
  if [ -n "$update" ]; then
    recording=testdata/linux-$kernel-$machine.txt
    in_node cat "/tmp/answers/$recording" </dev/null >"$work/recording"
    cp "$work/recording" "$recording"
  fi
  "$cluster" down -name resctrl
done
exit "$status"
