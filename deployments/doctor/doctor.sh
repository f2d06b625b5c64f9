#!/bin/bash
# Runs our tests on a node and a cluster of yours, and packs what they say into one file.
# Usage: doctor.sh [FILE.tar.gz]. docs/doctor.md has what each step does. Variables:
#   STEPS         which steps: machine, kernel (root, on an idle node), cluster (KUBECONFIG)
#   OBSERVER      an image with busybox in /bin, which the nodes can pull
#   FOCUS         a pattern for names of specs; empty: all that run on any cluster
# The programs pin.test, e2e.test and kubectl-numa are next to this file.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-dra-numa-doctor.tar.gz}
steps=" ${STEPS:-machine kernel cluster} "
observer=${OBSERVER:-docker.io/library/busybox:1.37}

case ${1-} in
-*)
	echo "usage: doctor.sh [FILE.tar.gz]" >&2
	exit 2
	;;
esac
for step in $steps; do
	case $step in
	machine | kernel | cluster) ;;
	*)
		echo "doctor.sh: error: STEPS has \"$step\": want machine, kernel, cluster" >&2
		exit 2
		;;
	esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
report=$work/dra-numa-doctor
mkdir "$report"
failed=0

say() {
	echo "$*" | tee -a "$report/summary.txt"
}

# try runs a command, keeps what it prints in FILE, and says how it ended. It goes on
# after a failure.
try() {
	local file=$1 status=0
	shift
	"$@" >"$report/$file" 2>&1 || status=$?
	if ((status)); then
		failed=1
		say "failed   $file (exit status $status)"
	else
		say "done     $file"
	fi
}

# software prints the versions of what decides how a node behaves.
software() {
	uname -srvm
	cat /etc/os-release
	echo "PID 1: $(cat /proc/1/comm)"
	echo "cgroup controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
	for program in containerd crio runc crun kubelet; do
		command -v $program >/dev/null && $program --version
	done
	return 0
}

if [[ $steps == *" machine "* ]]; then
	try software.txt software
	try topology.txt "$here/kubectl-numa" topology
	try topology.json "$here/kubectl-numa" topology -o json
fi
if [[ $steps == *" kernel "* ]]; then
	if (($(id -u))); then
		say "skipped  kernel.txt: you are not root"
	else
		try kernel.txt env NUMA_PIN_CGROUP=/sys/fs/cgroup "$here/pin.test" -test.run '^TestKernel' -test.v
	fi
fi
if [[ $steps == *" cluster "* ]]; then
	if [[ -z ${KUBECONFIG-} || ! -e ${KUBECONFIG} ]]; then
		say "skipped  cluster: KUBECONFIG names no file"
	else
		try version.txt "$here/kubectl-numa" version
		try features.txt "$here/kubectl-numa" features
		try validate.txt "$here/kubectl-numa" validate
		# Without -e2e.require, a spec that the nodes are too small for is skipped, and says why.
		try specs.txt "$here/e2e.test" -test.v -test.timeout 0 -ginkgo.no-color -ginkgo.v -ginkgo.timeout 4h \
			-kubeconfig "$KUBECONFIG" -observer-image "$observer" -e2e.kubectl-numa "$here/kubectl-numa" \
			-ginkgo.label-filter '!crowd && !devices && !boot && !machine' -ginkgo.focus "${FOCUS-}"
		try gather.txt "$here/kubectl-numa" gather --file "$report/bundle.tar.gz"
	fi
fi
tar -czf "$out" -C "$work" dra-numa-doctor || exit 1
echo "Wrote $out: look at it, and send it if you like."
exit $failed
