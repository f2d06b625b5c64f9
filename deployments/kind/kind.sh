#!/bin/bash
# Starts a kind cluster with the driver, runs the end-to-end suite on it, or deletes it.
# Usage: kind.sh up|test|down. The Makefile sets these variables:
#   KIND, HELM, E2E  the programs: kind, helm, and the compiled end-to-end suite
#   IMAGE_ARCHIVE    the image of the driver, localhost/dra-driver-numa:dev
#   FOCUS            for test: a pattern for names of specs; empty: all that run on any cluster
set -euo pipefail
cd "$(dirname "$0")/../.."
config=deployments/kind/cluster.yaml
name=dra-driver-numa
# Not every kind image has busybox: the suite's pods use this one, which the nodes pull.
busybox=docker.io/library/busybox:1.37

usage() {
	echo "usage: kind.sh up|test|down" >&2
	exit 2
}

# engine stops where kind has nothing to run nodes with.
engine() {
	if ! command -v docker >/dev/null && ! command -v podman >/dev/null && ! command -v nerdctl >/dev/null; then
		echo "kind.sh: error: there is no docker, podman or nerdctl: kind runs nodes as containers" >&2
		exit 1
	fi
}

kubeconfig=$(mktemp)
trap 'rm -f "$kubeconfig"' EXIT

case "${1-}" in
up)
	engine
	"$KIND" create cluster --config $config --kubeconfig "$kubeconfig" --wait 5m
	"$KIND" load image-archive "$IMAGE_ARCHIVE" --name $name
	"$HELM" upgrade --install dra-driver-numa deployments/helm/dra-driver-numa --kubeconfig "$kubeconfig" \
		--namespace dra-numa --create-namespace --set image.tag=dev --set kubelet.configFile=/var/lib/kubelet/config.yaml \
		--wait --timeout 10m
	echo "For kubectl: $KIND export kubeconfig --name $name"
	;;
test)
	"$KIND" get kubeconfig --name $name >"$kubeconfig"
	cd test/e2e
	# The machine is yours: no spec may reboot it, or change its clock, CPUs or hugepages.
	# Without -e2e.require, a spec that the nodes are too small for is skipped, and says why.
	"$E2E" -test.v -test.timeout 0 -ginkgo.no-color -ginkgo.v -ginkgo.timeout 2h -kubeconfig "$kubeconfig" -observer-image $busybox \
		-ginkgo.label-filter '!crowd && !devices && !boot && !machine' -ginkgo.focus "${FOCUS-}"
	;;
down)
	engine
	"$KIND" delete cluster --name $name
	;;
*) usage ;;
esac
