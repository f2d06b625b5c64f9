# `make help` explains every target. Every target does its own set-up, needs no
# terminal and leaves no cluster running, except those that say so.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# How a node of the rig looks: a file of test/rig/topology/machines, a guest
# kernel and its boot parameters, what is PID 1 (and with it the cgroup driver),
# the container runtime (containerd or crio), and how many nodes.
TOPOLOGY ?=
KERNEL   ?= 6.12
BOOT     ?=
INIT     ?= busybox
CRI      ?= containerd
NODES    ?= 1

# The version of Kubernetes, of control plane and nodes.
KUBERNETES ?= 1.37

# The version that the programs say they are, such as v0.1.0. A release sets the
# chart's appVersion to the same.
VERSION ?= dev

# Which specs of the end-to-end suite run: a pattern. Default: all.
FOCUS ?=

# And those of them that have a label: kernel for what is up to the kernel or to
# PID 1. Default: all.
LABELS ?=

# How much of the CPU the nodes' emulators get, in percent: 50 shows what happens on
# a machine of half the speed.
SPEED ?= 100

# How many newcomers a crowd has on a fast machine; 0: there is no crowd.
CROWD ?= 30

# How long a soak takes, and what it is to repeat (0: something new).
DURATION ?= 30m
SEED     ?= 0

export TOPOLOGY KERNEL BOOT INIT CRI NODES KUBERNETES NODE CMD FOCUS LABELS SPEED CROWD DURATION SEED

# One set of flags for all but the race detector: the modules that daemon, tools
# and tests share are compiled once.
STATIC   := CGO_ENABLED=0 GOFLAGS='$(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)'
# grpcnotrace: gRPC's page of traces has templates, for which the linker keeps
# every method there is: 16 MB of the daemon's 49.
BUILD     = build -ldflags '-s -w -X github.com/dra-driver-numa/dra-driver-numa/internal/version.linked=$(VERSION) $(NEXT)' -tags grpcnotrace
GO_BUILD  = $(STATIC) go $(BUILD)
# Lint has vet's checks. Without -vet=off, each set of flags would have all modules checked.
NO_VET   := -vet=off
TOOL     := $(STATIC) go tool -modfile=$(CURDIR)/tools/go.mod
CHART    := deployments/helm/dra-driver-numa
CLUSTER  := bin/cluster
IMAGE    := localhost/dra-driver-numa:dev

# NVIDIA's header says of many functions that they are old.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

# Everything with Go files of its own go.mod, this folder first.
MODULES  := . deployments/sbom test/rig test/monitoring test/bench test/kind test/scale

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/dra-numa, bin/numa-pin, bin/numa-webhook, bin/kubectl-numa and bin/cluster
	$(GO_BUILD) -o bin/ ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook ./cmd/kubectl-numa
	$(STATIC) go -C test/rig build -o ../../bin/cluster .

# numa-nvml is the only program that needs a C library: it runs in another image,
# which has one.
.PHONY: image
image: build cc ## Write the container image bin/images/dra-driver-numa.tar
	mkdir -p bin/images
	CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -o bin/ ./cmd/numa-nvml
	$(STATIC) go run ./deployments/image -ref $(IMAGE) -out bin/images/dra-driver-numa.tar -entrypoint /dra-numa \
	  /dra-numa=bin/dra-numa /numa-pin=bin/numa-pin /numa-webhook=bin/numa-webhook /numa-nvml=dynamic:bin/numa-nvml

KREW_ARCHS ?= amd64 arm64

.PHONY: krew
krew: ## Write bin/krew: the archives of kubectl-numa that .krew.yaml names (VERSION=v0.1.0)
	mkdir -p bin/krew
	for arch in $(KREW_ARCHS); do \
	  GOOS=linux GOARCH=$$arch $(GO_BUILD) -o bin/krew/kubectl-numa ./cmd/kubectl-numa; \
	  $(STATIC) go run ./deployments/release $(call plugin-archive,bin/krew,bin/krew); \
	done

# plugin-archive has the arguments of deployments/release that write an archive of krew to
# the folder $(1), with the program in the folder $(2).
plugin-archive = archive $(1)/kubectl-numa_$(VERSION)_linux_$$arch.tar.gz LICENSE=LICENSE kubectl-numa=x:$(2)/kubectl-numa

# What decides the bytes of a release, apart from the source: the version of Go, and what
# links numa-nvml, the only program with C in it. CGO_PACKAGES= does without this check.
RELEASE_GO   := go1.26.8
CGO_PACKAGES ?= gcc-12=12.2.0-14+deb12u1 binutils=2.40-2 libc6-dev=2.36-9+deb12u14
RELEASE_ENV  := GOTOOLCHAIN=$(RELEASE_GO) GOFLAGS='-trimpath -buildvcs=false' GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0
RELEASE      := bin/release
# The time that the SBOM has.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)

.PHONY: release
release: cc ## Write bin/release: programs, images, chart, SBOM and checksums of a release (VERSION=v0.1.0)
	@for package in $(CGO_PACKAGES); do \
	  found=$$(dpkg-query --show --showformat='$${Package}=$${Version}' "$${package%%=*}" 2>/dev/null || true); \
	  [[ "$$found" == "$$package" ]] || { echo "make: numa-nvml is to be built with $$package, here is $${found:-none}: install it, or set CGO_PACKAGES= and get other bytes" >&2; exit 1; }; \
	done; \
	[[ "$$(go env GOHOSTARCH)" == amd64 ]] || { echo "make: build a release on amd64, not on $$(go env GOHOSTARCH): numa-nvml needs a C compiler" >&2; exit 1; }
	rm -rf $(RELEASE) bin/release-programs
	mkdir -p $(RELEASE) bin/release-programs
	$(RELEASE_ENV) CGO_ENABLED=0 go build -o bin/release-programs/ ./deployments/release ./deployments/image
	$(RELEASE_ENV) CGO_ENABLED=0 go -C deployments/sbom build -o ../../bin/release-programs/ .
	bin/release-programs/release chart $(RELEASE) $(CHART) $(VERSION)
	for arch in $(KREW_ARCHS); do \
	  programs=bin/release-programs/linux_$$arch; plugin=bin/release-programs/plugin_linux_$$arch; \
	  export GOOS=linux GOARCH=$$arch $(RELEASE_ENV); \
	  CGO_ENABLED=0 go $(BUILD) -o $$programs/ ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook; \
	  CGO_ENABLED=0 go $(BUILD) -o $$plugin/ ./cmd/kubectl-numa; \
	  if [[ $$arch == amd64 ]]; then \
	    CGO_ENABLED=1 go build -ldflags '-s -w' -o $$programs/ ./cmd/numa-nvml; \
	  else \
	    echo "make: the release has no numa-nvml for $$arch, which needs a C compiler for $$arch"; \
	  fi; \
	  packed=(LICENSE=LICENSE); image=(); \
	  for path in $$programs/*; do \
	    name=$${path##*/}; packed+=("$$name=x:$$path"); image+=("/$$name=$$([[ $$name != numa-nvml ]] || echo dynamic:)$$path"); \
	  done; \
	  bin/release-programs/release $(call plugin-archive,$(RELEASE),$$plugin); \
	  bin/release-programs/release archive $(RELEASE)/dra-driver-numa_$(VERSION)_linux_$$arch.tar.gz "$${packed[@]}"; \
	  bin/release-programs/image -arch $$arch -ref localhost/dra-driver-numa:$(VERSION) -out $(RELEASE)/dra-driver-numa-image_$(VERSION)_linux_$$arch.tar \
	    -entrypoint /dra-numa "$${image[@]}"; \
	done
	bin/release-programs/sbom -version $(VERSION) -time $(SOURCE_DATE_EPOCH) -out $(RELEASE)/dra-driver-numa_$(VERSION).spdx.json bin/release-programs/*linux_*/*
	bin/release-programs/release sums $(RELEASE)

# The second build is of the same files in another folder, with other times and modes, another
# umask and time zone, and without anything that an earlier build has left.
.PHONY: release-check
release-check: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
release-check: release qemu-user ## Write bin/release, build it again elsewhere, and compare; start the programs (VERSION=v0.1.0)
	@$(in-memory); there="$$TMPDIR/elsewhere"; mkdir -p "$$there" "$$TMPDIR/cache"; \
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$$there"; \
	find "$$there" -type f -exec chmod g+w {} + -exec touch -d 2001-02-03 {} +; \
	(umask 077; export TZ=Asia/Kathmandu GOCACHE="$$TMPDIR/cache"; $(call timed,second build,$(MAKE) --no-print-directory -C "$$there" release)); \
	diff $(RELEASE)/SHA256SUMS "$$there/$(RELEASE)/SHA256SUMS"; \
	(cd $(RELEASE); sha256sum --quiet -c SHA256SUMS); \
	for path in bin/release-programs/*linux_*/*; do \
	  emulator=; \
	  if [[ $$path == *_arm64/* ]] && ! emulator=$$(command -v qemu-aarch64-static || command -v qemu-aarch64); then \
	    echo "make: $$path was not started: there is no qemu-aarch64 (package qemu-user-static)"; continue; \
	  fi; \
	  $$emulator $$path --help >/dev/null; \
	done; \
	echo "make: both builds have the same bytes"

# What a line of Go has where more than one goroutine is at work.
CONCURRENT := '^[[:space:]]*go (func|[A-Za-z_.]+[(])|[.]Go[(]|\<sync[.](RW)?(Mutex|WaitGroup)|httptest[.]'

# in-memory has what follows keep its temporary files in memory, where 4 GiB are free
# and programs may be run from there: tests write thousands of small files, for which a
# disk took up to 20 times as long.
define in-memory
TMPDIR=$$(mktemp -d -p /dev/shm dra-numa.XXXXXX 2>/dev/null || mktemp -d); \
if (( $$(df --output=avail "$$TMPDIR" | tail -n 1) < 4 << 20 )) || ! cp /bin/true "$$TMPDIR" || ! "$$TMPDIR/true"; then \
  rm -rf "$$TMPDIR"; TMPDIR=$$(mktemp -d); \
fi; \
export TMPDIR; trap 'rm -rf "$$TMPDIR"' EXIT
endef

# The race detector takes ten times as long: it has the packages with goroutines only,
# and of them no long test of a single goroutine (-short). What it runs in full is not run
# without it.
.PHONY: unit
unit: cc lstopo chromium ## Run every test that needs no cluster, with the race detector where there are goroutines
	@$(in-memory); \
	of() { go list "$$@" | grep -v -e /test/e2e -e /test/apiserver -e /test/scheduler | sort; }; \
	racy=$$(of $$(grep -rlE --include='*.go' $(addprefix --exclude-dir=,$(notdir $(filter-out .,$(MODULES)))) $(CONCURRENT) . | xargs -n 1 dirname | sort -u)); \
	long=$$(of $$(grep -rlF --include='*_test.go' 'testing.Short()' . | xargs -n 1 dirname | sort -u)); \
	plain=$$(of ./... | grep -v /cmd/numa-nvml | grep -vxF "$$(comm -23 <(echo "$$racy") <(echo "$$long"))"); \
	HELM="$$($(TOOL) -n helm)"; export HELM; \
	$(call timed,unit tests,$(STATIC) go test $(NO_VET) -timeout 2h $$plain); \
	$(call timed,unit tests with the race detector,go test $(NO_VET) -race -short -timeout 2h $$racy); \
	$(call timed,unit tests of the SBOM,$(STATIC) go -C deployments/sbom test $(NO_VET) ./...); \
	$(call timed,unit tests of the cluster for kind,$(STATIC) go -C test/kind test $(NO_VET) -count=1 ./...); \
	$(call timed,unit tests of the rig,go -C test/rig test $(NO_VET) -race ./...); \
	$(call timed,unit tests of the benchmarks,$(STATIC) go -C test/bench test $(NO_VET) ./...); \
	$(call timed,unit tests of the trials at scale,$(STATIC) go -C test/scale test $(NO_VET) ./...)

# apt-install installs Debian packages $(1), with new lists of packages where the present ones, if
# there are any, do not do.
apt-install = { apt-get install --yes --no-install-recommends $(1) || \
  { apt-get update && apt-get install --yes --no-install-recommends $(1); }; }

# The race detector needs a C compiler.
.PHONY: cc
cc:
	@command -v $${CC:-gcc} >/dev/null || { \
	  command -v apt-get >/dev/null || { echo 'make: no C compiler: install gcc and the C library headers' >&2; exit 1; }; \
	  $(call apt-install,gcc libc6-dev); }

# test/hwloc compares our reader with it, and skips where there is neither.
.PHONY: lstopo
lstopo:
	@command -v lstopo-no-graphics >/dev/null || ! command -v apt-get >/dev/null || \
	  $(call apt-install,hwloc-nox)

# release-check starts the programs for arm64 with it, and says so where there is none.
.PHONY: qemu-user
qemu-user:
	@command -v qemu-aarch64-static qemu-aarch64 >/dev/null || ! command -v apt-get >/dev/null || \
	  $(call apt-install,qemu-user-static)

# cluster/holdings/web looks at its pages with it, and skips where there is neither.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || \
	  $(call apt-install,chromium) || echo "make: no chromium: its tests skip" >&2

.PHONY: lint
lint: cc ## Check style, layering and common mistakes of every module, and that programs reach every function
	@for module in $(MODULES); do \
	  echo "golangci-lint run ($$module)"; \
	  (cd $$module && $(TOOL) golangci-lint run --config $(CURDIR)/.golangci.yaml ./...); \
	done
	CGO_ENABLED=1 $$($(TOOL) -n golangci-lint) run --config $(CURDIR)/.golangci.yaml ./cmd/numa-nvml
	@unreached=$$($(TOOL) deadcode ./cmd/...); [[ -z "$$unreached" ]] || { printf '%s\n' "$$unreached" >&2; exit 1; }

.PHONY: fmt
fmt: ## Format every module
	@for module in $(MODULES); do \
	  (cd $$module && $(TOOL) golangci-lint fmt --config $(CURDIR)/.golangci.yaml ./...); \
	done

.PHONY: chart-lint
chart-lint: ## Check and render the Helm chart
	$(TOOL) helm lint --strict $(CHART)
	$(TOOL) helm template dra-driver-numa $(CHART) --namespace dra-numa >/dev/null

# Go takes results from its cache although files outside of the module have changed.
.PHONY: monitoring-test
monitoring-test: ## Check alert rules and dashboards with Prometheus' own packages: each fault fires its alert, each panel has numbers
	$(STATIC) go -C test/monitoring test $(NO_VET) -count=1 ./...

GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Its database is not in a module. Without it, nothing was checked, which is no failure.
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in the modules of the programs; says "not checked" without the database
	@status=0; output=$$($(STATIC) go run $(GOVULNCHECK) ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook ./cmd/kubectl-numa 2>&1) || status=$$?; \
	if (( status )) && grep -qE 'vuln\.go\.dev|fetching vulnerabilities' <<<"$$output"; then \
	  echo "vulncheck: not checked: $$(grep -m 1 -E 'vuln\.go\.dev|fetching vulnerabilities' <<<"$$output")"; \
	else \
	  printf '%s\n' "$$output"; exit $$status; \
	fi

# How long each fuzz test runs.
FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Run each fuzz test for a while [FUZZTIME=30s]
	@grep -rHoE --include='*_test.go' --exclude-dir=rig '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file name; do \
	  name=$${name#func }; echo "make: fuzz $$name ($$(dirname $$file))"; \
	  $(STATIC) go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$(dirname $$file) </dev/null; \
	done

# timed runs the commands $(2) and prints how long the step $(1) took.
define timed
started=$$SECONDS; $(2); echo "make: $(1): $$((SECONDS - started)) s"
endef

# stages runs the targets $(1), one after the other, and prints how long each took. It
# ends with the first that fails, and says which, or before one if the command $(2) fails.
define stages
table=; total=$$SECONDS; \
for stage in $(1); do \
  $(if $(2),$(2);) \
  started=$$SECONDS; echo "make: stage $$stage"; status=0; \
  $(MAKE) --no-print-directory $$stage || status=$$?; \
  table+=$$(printf '%-20s %5d s' "$$stage" $$((SECONDS - started)))$$'\n'; \
  if (( status )); then printf '%s' "$$table"; echo "make: stage $$stage failed" >&2; exit $$status; fi; \
done; \
printf '%s%-20s %5d s\n' "$$table" total $$((SECONDS - total))
endef

# with-clusters starts a recipe that brings up the clusters $(1). Whatever
# becomes of it, they are stopped; if it failed, what the rig says about nodes that
# restarted is printed, their logs stay in bin/logs, and it exits as its failing command did.
define with-clusters
finish() { \
  status=$$?; trap - EXIT; \
  for name in $(1); do \
    if (( status )); then \
      mkdir -p bin/logs; rm -rf "bin/logs/$$name"; \
      cp -r "$$($(CLUSTER) path -name $$name logs)" "bin/logs/$$name" 2>/dev/null && \
        { find "bin/logs/$$name" -name 'numa-node-*.log' ! -name '*-console.log' -exec tail -n 40 {} +; \
          echo "make: the logs of cluster $$name are in bin/logs/$$name"; } >&2; \
    fi; \
    $(CLUSTER) down -name $$name || true; \
  done; \
  exit $$status; \
}; \
for name in $(1); do $(CLUSTER) down -name $$name; done; \
trap finish EXIT
endef

.PHONY: apiserver
apiserver: build ## Have a real API server take our ResourceSlices, and a real scheduler agree with our simulation [KUBERNETES=1.37|1.36]
	@$(call with-clusters,apiserver gates-off allocatable); \
	$(CLUSTER) up -name apiserver -kubernetes "$$KUBERNETES" -nodes 0; \
	$(CLUSTER) up -name allocatable -kubernetes "$$KUBERNETES" -nodes 0 -feature-gates DRANodeAllocatableResources=true; \
	$(CLUSTER) up -name gates-off -kubernetes "$$KUBERNETES" -nodes 0 -feature-gates DRAConsumableCapacity=false; \
	APISERVER_KUBECONFIG=$$($(CLUSTER) path -name apiserver kubeconfig) \
	GATES_OFF_KUBECONFIG=$$($(CLUSTER) path -name gates-off kubeconfig) \
	ALLOCATABLE_KUBECONFIG=$$($(CLUSTER) path -name allocatable kubeconfig) \
	DRA_NUMA=$(CURDIR)/bin/dra-numa \
	KUBECTL_NUMA=$(CURDIR)/bin/kubectl-numa \
	HELM="$$($(TOOL) -n helm)" \
	  $(STATIC) go test $(NO_VET) -count=1 -timeout 1h ./test/apiserver; \
	APISERVER_KUBECONFIG=$$($(CLUSTER) path -name apiserver kubeconfig) \
	ALLOCATABLE_KUBECONFIG=$$($(CLUSTER) path -name allocatable kubeconfig) \
	SCHEDULER_RESTART="$(CURDIR)/$(CLUSTER) restart -name apiserver scheduler" \
	  $(STATIC) go test $(NO_VET) -count=1 -timeout 1h ./test/scheduler

# install-chart installs the driver in cluster $(1), whose nodes have the image, with the values $(2): this
# chart and image, or the chart $(3) and the tag $(4).
define install-chart
$(TOOL) helm upgrade --install dra-driver-numa $(or $(3),$(CHART)) --kubeconfig "$$($(CLUSTER) path -name $(1) kubeconfig)" \
  --namespace dra-numa --create-namespace --set image.tag=$(or $(4),dev) --set kubelet.configFile=/var/lib/kubelet/config.yaml $(2) \
  --wait --timeout 20m
endef

# in-node runs in cluster $(1) the tests of binary bin/$(2) whose names begin with TestKernel, with the environment $(3).
define in-node
$(CLUSTER) exec -name $(1) -- sh -c 'cat >/tmp/$(2) && chmod +x /tmp/$(2) && $(3) exec /tmp/$(2) -test.run ^TestKernel -test.v' <bin/$(2)
endef

# The suite is built before a node takes the CPUs.
.PHONY: suite
suite:
	$(STATIC) go test -c -o bin/e2e.test ./test/e2e

# with-node starts a recipe that brings up cluster $(1) whose nodes have the image.
define with-node
$(call with-clusters,$(1)); \
$(call timed,start of the cluster,$(CLUSTER) up -name $(1) -kubernetes "$$KUBERNETES" -kernel "$$KERNEL" -boot "$$BOOT" -init "$$INIT" -cri "$$CRI" -nodes "$$NODES" -speed "$$SPEED" $(if $(TOPOLOGY),-topology "$$TOPOLOGY") $(if $(GATES),-feature-gates $(GATES))); \
$(call timed,image,$(CLUSTER) load -name $(1) bin/images/dra-driver-numa.tar)
endef

# suite runs the end-to-end suite on cluster $(1) with the flags $(2). It has no limit
# of its own: its waits have.
define suite
$(call timed,end-to-end suite,(cd test/e2e; $(CURDIR)/bin/e2e.test -test.v -test.timeout 0 -ginkgo.no-color -ginkgo.silence-skips -ginkgo.timeout 24h -e2e.reports $(CURDIR)/bin/logs/$(1)-specs -kubeconfig "$$($(CURDIR)/$(CLUSTER) path -name $(1) kubeconfig)" $(2)))
endef

# suite-uninstall uninstalls the chart from cluster $(1), whose label is as the cluster's name.
define suite-uninstall
$(call suite,$(1),-e2e.require -e2e.helm "$$($(TOOL) -n helm)" -e2e.chart $(CURDIR)/$(CHART) -ginkgo.focus "$$FOCUS" -ginkgo.label-filter $(1)-uninstall)
endef

.PHONY: e2e
e2e: image suite ## Run the end-to-end suite, and the tests that need a node's kernel, on a node of the rig [KUBERNETES=] [KERNEL=] [INIT=] [FOCUS=pattern] [LABELS=kernel]
	$(STATIC) go test -c -o bin/ ./cdi/pin ./numa/fake
	@$(call with-node,e2e); \
	$(call timed,tests in the node,$(call in-node,e2e,pin.test,NUMA_PIN_CGROUP=/sys/fs/cgroup)); \
	$(if $(TOPOLOGY),,$(call in-node,e2e,fake.test,NUMA_RIG_ROOT=/);) \
	$(call timed,chart,$(call install-chart,e2e,--set viewer.enabled=true)); \
	$(call suite,e2e,-e2e.require -ginkgo.focus "$$FOCUS" -ginkgo.label-filter "!crowd && !devices && !boot$${LABELS:+ && $$LABELS}"); \
	if [[ "$$CROWD" != 0 ]]; then \
	  $(call suite,e2e,-e2e.require -e2e.crowd "$$CROWD" -ginkgo.focus "$$FOCUS" -ginkgo.label-filter "crowd$${LABELS:+ && $$LABELS}"); \
	fi

.PHONY: e2e-systemd
e2e-systemd: ## Run what is up to the kernel or to PID 1 again, on Linux 7.2 with systemd [as e2e]
	$(MAKE) e2e KERNEL=7.2 INIT=systemd LABELS=kernel

.PHONY: e2e-crio
e2e-crio: ## Run the suite with CRI-O in the place of containerd: nightly, not part of test [as e2e]
	$(MAKE) e2e CRI=crio

# On the other kernel and PID 1 than e2e, so that make test has both. Label gate marks specs of caches and frequencies.
.PHONY: e2e-devices
e2e-devices: export TOPOLOGY = test/rig/topology/machines/devices.yaml
e2e-devices: export KERNEL = 7.2
e2e-devices: export INIT = systemd
e2e-devices: image suite ## Have claims hold drives, network cards, GPUs, ways of caches and fast CPUs of a node of the rig, also beside another driver, and the webhook mirror claims [KUBERNETES=] [KERNEL=] [INIT=] [FOCUS=pattern]
	$(GO_BUILD) -o bin/gpudriver ./test/gpudriver
	$(STATIC) go run ./deployments/image -ref localhost/gpudriver:dev -out bin/images/gpudriver.tar -entrypoint /gpudriver /gpudriver=bin/gpudriver
	$${CC:-gcc} -shared -fPIC -I"$$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml" -o bin/libnvidia-ml.so.1 test/nvml/nvml.c
	$(STATIC) go run ./deployments/image -ref localhost/nvml:dev -out bin/images/nvml.tar /usr/lib/libnvidia-ml.so.1=bin/libnvidia-ml.so.1 \
	  $$(ldd bin/numa-nvml | awk '{ for (i = 1; i <= NF; i++) if ($$i ~ /^\//) print $$i "=dynamic:" $$i }')
	@$(call with-node,devices); \
	$(CLUSTER) load -name devices bin/images/gpudriver.tar; \
	$(CLUSTER) load -name devices bin/images/nvml.tar; \
	$(call timed,chart,$(call install-chart,devices,--values test/e2e/cache-values.yaml --values test/e2e/devices-values.yaml)); \
	$(call suite,devices,-e2e.require -e2e.monitor "$(CURDIR)/$(CLUSTER) monitor -name devices" -ginkgo.focus "$$FOCUS" -ginkgo.label-filter "devices || gate")

# What needs a boot of its own.
REACH := reach-6.1 reach-isolcpus reach-isolcpus-7.2 reach-1gi reach-two-nodes

.PHONY: reach
reach: ## Run what needs a boot of its own: Linux 6.1, which has no partitions, the boot parameter isolcpus=, hugepages of 1 GiB, and two nodes, with a scheduler that counts claims [KUBERNETES=] [INIT=]
	@$(call stages,$(REACH))

.PHONY: $(REACH)
reach-6.1: export KERNEL = 6.1
reach-isolcpus reach-isolcpus-7.2: export BOOT = isolcpus=6-7
reach-isolcpus-7.2: export KERNEL = 7.2
reach-6.1: LABEL = old-kernel
reach-isolcpus reach-isolcpus-7.2: LABEL = isolcpus
reach-1gi: export TOPOLOGY = test/rig/topology/machines/gigantic.yaml
reach-1gi: export BOOT = hugepagesz=1G hugepages=1:1,2:2
reach-1gi: LABEL = gigantic
reach-1gi: VALUES = --set-string 'config.reservedHugepages[0].numaNodes=2' --set 'config.reservedHugepages[0].size=1Gi' --set 'config.reservedHugepages[0].amount=1Gi'
# In Kubernetes 1.36, the gate has other fields, which the driver does not write.
reach-two-nodes: export NODES = 2
reach-two-nodes: GATES = $(if $(filter 1.36,$(KUBERNETES)),,DRANodeAllocatableResources=true)
reach-two-nodes: LABEL = two-nodes$(if $(GATES), || counting)
$(REACH): image suite
	@$(call with-node,reach); \
	$(call timed,chart,$(call install-chart,reach,$(VALUES))); \
	$(call suite,reach,-e2e.require -ginkgo.label-filter "$(LABEL)")

# Of the specs for machines with resctrl, make test runs those with label gate, on the node of e2e-devices.
E2E_CACHE := e2e-cache-6.12 e2e-cache-7.2 e2e-cache-shared e2e-cache-split

.PHONY: e2e-cache
e2e-cache: ## Run what divides caches and memory bandwidth, on Linux 6.12 and 7.2, and on machines whose caches are not those of NUMA nodes: nightly, not part of test [KUBERNETES=] [INIT=] [FOCUS=pattern]
	@$(call stages,$(E2E_CACHE))

.PHONY: $(E2E_CACHE)
e2e-cache-6.12 e2e-cache-7.2: export TOPOLOGY = test/rig/topology/machines/cache.yaml
e2e-cache-6.12: export KERNEL = 6.12
e2e-cache-7.2 e2e-cache-shared e2e-cache-split: export KERNEL = 7.2
e2e-cache-shared: export TOPOLOGY = test/rig/topology/machines/cache-shared.yaml
e2e-cache-split: export TOPOLOGY = test/rig/topology/machines/cache-split.yaml
e2e-cache-6.12 e2e-cache-7.2: VALUES = --values test/e2e/cache-values.yaml
e2e-cache-shared e2e-cache-split: VALUES = --set config.cache.os.ways=2,config.cache.guaranteed.ways=4
e2e-cache-split: VALUES += --set config.zoneBy=l3
e2e-cache-6.12 e2e-cache-7.2: LABEL = cache
e2e-cache-shared e2e-cache-split: LABEL = cache-layout
$(E2E_CACHE): image suite
	@$(call with-node,cache); \
	$(call timed,chart,$(call install-chart,cache,$(VALUES))); \
	$(call suite,cache,-e2e.require -ginkgo.focus "$$FOCUS" -ginkgo.label-filter $(LABEL)); \
	$(if $(findstring layout,$(LABEL)),,$(call suite-uninstall,cache))

.PHONY: cache-steps
cache-steps: ## Have 100,000 random claims come and go on a fake resctrl tree that refuses some writes: nightly, not part of test
	@$(in-memory); \
	$(STATIC) go test $(NO_VET) -count=1 -timeout 2h -run '^TestRandomClaims(NeverShareWays|LeakNoCounters)$$' ./driver -args -cache-steps 100000

# TARGETS are what a new user tries; see README.md.
.PHONY: empty-debian
empty-debian: export TARGETS ?= demo
empty-debian: ## Run make demo in a Debian that has make, git and Go, and nothing else: as root, nightly, not part of test [TARGETS="demo test"]
	@command -v mmdebstrap >/dev/null || $(call apt-install,mmdebstrap); \
	$(STATIC) go run ./test/empty $$TARGETS

.PHONY: resctrl-answers
resctrl-answers: build ## Compare the fake resctrl tree of unit tests with what Linux 6.12 and 7.2 answer on three machines: nightly, not part of test
	@test/resctrlfs/ask-kernels.sh

.PHONY: histories
histories: ## Have pods come and go, deleted by force or not, in 100,000 random steps on a model of the kubelet: nightly, not part of test
	@$(in-memory); \
	$(STATIC) go test $(NO_VET) -count=1 -timeout 2h -run '^TestHistoriesGiveNothingTwice$$' ./driver -args -history-steps 100000

# A node with frequencies and idle states, which claims change.
E2E_POWER := e2e-power-6.12 e2e-power-7.2

.PHONY: e2e-power
e2e-power: ## Run what changes frequencies and idle states, on Linux 6.12 and 7.2: nightly, not part of test [KUBERNETES=] [INIT=] [FOCUS=pattern]
	@$(call stages,$(E2E_POWER))

.PHONY: $(E2E_POWER)
$(E2E_POWER): export TOPOLOGY := test/rig/topology/machines/power.yaml
e2e-power-6.12: export KERNEL = 6.12
e2e-power-7.2: export KERNEL = 7.2
$(E2E_POWER): image suite
	$(STATIC) go test -c -o bin/ ./driver
	@$(call with-node,power); \
	$(call timed,tests in the node,$(call in-node,power,driver.test,NUMA_POWER_ROOT=/)); \
	$(call timed,chart,$(call install-chart,power,--values test/e2e/power-values.yaml)); \
	$(call suite,power,-e2e.require -ginkgo.focus "$$FOCUS" -ginkgo.label-filter power); \
	$(call suite-uninstall,power)

# The specs break the node in one way after the other, and record what it sends meanwhile.
.PHONY: e2e-alerts
e2e-alerts: image suite ## Break a node of the rig in each way that has an alert, and let Prometheus' rules say which alerts fire, and its queries whether each panel has numbers: nightly, not part of test [KUBERNETES=] [KERNEL=] [INIT=] [FOCUS=pattern]
	rm -rf bin/scrapes
	@$(call with-node,alerts); \
	$(call timed,chart,$(call install-chart,alerts)); \
	$(call suite,alerts,-e2e.require -e2e.monitor "$(CURDIR)/$(CLUSTER) monitor -name alerts" -e2e.scrapes "$(CURDIR)/bin/scrapes" -ginkgo.focus "$$FOCUS" -ginkgo.label-filter alerts)
	$(STATIC) go -C test/monitoring test $(NO_VET) -count=1 -v -run 'TestFaultsOfANode|TestPanelsOfANode' . -args -scrapes "$(CURDIR)/bin/scrapes"$(if $(FOCUS), -some)

.PHONY: e2e-runbooks
e2e-runbooks: image suite ## Go through runbooks step by step on a node of the rig: nightly, not part of test [KUBERNETES=] [KERNEL=] [INIT=] [FOCUS=pattern]
	@$(call with-node,runbooks); \
	$(call timed,chart,$(call install-chart,runbooks,--set webhook.enabled=true --set webhook.failurePolicy=Fail --set webhook.replicas=1)); \
	$(call suite,runbooks,-e2e.require -e2e.helm "$$($(TOOL) -n helm)" -e2e.chart $(CURDIR)/$(CHART) -ginkgo.focus "$$FOCUS" -ginkgo.label-filter runbooks)

# At the end, the cluster has no driver.
.PHONY: e2e-names
e2e-names: image suite ## Install the driver under other names in another namespace of a node of the rig, and uninstall it; a second release is refused: nightly, not part of test [KUBERNETES=] [KERNEL=] [INIT=]
	@$(call with-node,names); \
	$(call timed,chart,$(call install-chart,names)); \
	$(call suite,names,-e2e.require -e2e.helm "$$($(TOOL) -n helm)" -e2e.chart $(CURDIR)/$(CHART) -ginkgo.label-filter names)

.PHONY: e2e-audit
e2e-audit: image suite ## Have 60 claims run for 10 minutes, and let the API server's audit log say that the driver writes nothing: nightly, not part of test [KUBERNETES=] [KERNEL=] [INIT=]
	@$(call with-node,audit); \
	$(call timed,chart,$(call install-chart,audit)); \
	$(call suite,audit,-e2e.require -e2e.audit "$$($(CURDIR)/$(CLUSTER) path -name audit logs)/audit.log" -ginkgo.label-filter audit)

# What upgrade-test upgrades from: a tag or a commit. Without tags, it is the last commit that
# changed a format, or labels of the chart.
FROM ?= $(or $(shell git tag --list 'v*' --sort=-version:refname | head -n 1),e31c2cfcc9ef900d86ddfd9e15c2b180a7498cd5)

# Built outside of this folder: go would take it for a part of the module.
.PHONY: upgrade-from
upgrade-from:
	@$(in-memory); from="$$TMPDIR/from"; mkdir "$$from"; git archive $(FROM) | tar -x -C "$$from"; \
	rm -rf bin/upgrade; mkdir -p bin/upgrade; \
	(cd "$$from"; $(GO_BUILD) -o $(CURDIR)/bin/upgrade/ ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook); \
	cp -r "$$from/$(CHART)" bin/upgrade/chart
	$(STATIC) go run ./deployments/image -ref localhost/dra-driver-numa:from -out bin/images/from.tar -entrypoint /dra-numa \
	  /dra-numa=bin/upgrade/dra-numa /numa-pin=bin/upgrade/numa-pin /numa-webhook=bin/upgrade/numa-webhook

# A made-up next release: this tree, with a checkpoint of version 2 that has one more field.
.PHONY: upgrade-next
upgrade-next: NEXT = -X github.com/dra-driver-numa/dra-driver-numa/driver.nextRelease=next
upgrade-next:
	rm -rf bin/next; mkdir -p bin/next
	$(GO_BUILD) -o bin/next/ ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook
	$(STATIC) go run ./deployments/image -ref localhost/dra-driver-numa:next -out bin/images/next.tar -entrypoint /dra-numa \
	  /dra-numa=bin/next/dra-numa /numa-pin=bin/next/numa-pin /numa-webhook=bin/next/numa-webhook

# A bad release: this tree with a hook that no kernel runs.
.PHONY: upgrade-broken
upgrade-broken: build
	echo '#!/nothing' >bin/broken-hook; chmod +x bin/broken-hook
	$(STATIC) go run ./deployments/image -ref localhost/dra-driver-numa:broken -out bin/images/broken.tar -entrypoint /dra-numa \
	  /dra-numa=bin/dra-numa /numa-pin=bin/broken-hook /numa-webhook=bin/numa-webhook

# The specs of the uninstallation come last: they leave no driver.
.PHONY: upgrade-test
upgrade-test: image suite upgrade-from upgrade-next upgrade-broken ## Upgrade the driver from an older build on a node of the rig, roll back, upgrade again, also to a made-up next release and to one that does not work, and uninstall, while pods come and go: before a release [FROM=tag or commit] [KUBERNETES=] [KERNEL=] [INIT=]
	@$(call with-node,upgrade); \
	$(CLUSTER) load -name upgrade bin/images/from.tar; \
	$(CLUSTER) load -name upgrade bin/images/next.tar; \
	$(CLUSTER) load -name upgrade bin/images/broken.tar; \
	$(call timed,chart of $(FROM),$(call install-chart,upgrade,,bin/upgrade/chart,from)); \
	for label in upgrade broken next uninstall; do \
	  case $$label in broken | next) tag=$$label;; *) tag=dev;; esac; \
	  $(call suite,upgrade,-e2e.require -e2e.helm "$$($(TOOL) -n helm)" -e2e.chart $(CURDIR)/$(CHART) -e2e.tag $$tag -ginkgo.label-filter $$label); \
	done

.PHONY: soak
soak: image suite ## Make, share, resize and delete claims at random and kill everything, on a node of the rig [DURATION=30m] [SEED=n] [KERNEL=] [INIT=]
	@$(call with-node,soak); \
	$(call install-chart,soak); \
	$(call suite,soak,-ginkgo.focus soak -e2e.soak "$$DURATION" -e2e.seed "$$SEED")

# What test, test-all and nightly run, in order. PROGRAMS need no cluster: test runs them at
# the lowest priority beside its clusters, whose emulated CPUs idle now and then. A kernel with
# autogroups compares priorities within a session only: LAST is for the session as a whole.
LAST := echo 19 2>/dev/null >/proc/self/autogroup || true;
PROGRAMS := qemu unit lint chart-lint monitoring-test
TEST     := apiserver e2e e2e-devices
TEST_ALL := test e2e-systemd-crowd e2e-1.36 reach soak-start
NIGHTLY  := cache-steps histories resctrl-answers e2e-cache e2e-power e2e-alerts e2e-runbooks e2e-names e2e-audit fuzz e2e-crio

# A crowd takes 6 minutes; test-all has two.
.PHONY: test
test: export CROWD = 0
test: cc lstopo chromium ## Run unit, lint, chart-lint and monitoring-test beside apiserver, e2e without a crowd, and e2e-devices, then bench-smoke: what every change has to pass
	@mkdir -p bin/logs; began=$$SECONDS; \
	setsid bash -c '$(LAST) exec nice -n 19 $(MAKE) --no-print-directory test-programs' >bin/logs/programs.log 2>&1 & programs=$$!; \
	trap 'kill -- -$$programs 2>/dev/null || true' EXIT; \
	passing() { wait $$programs || { cat bin/logs/programs.log; exit 1; }; }; \
	echo "make: $(PROGRAMS) run beside what follows; they write to bin/logs/programs.log"; \
	$(call stages,$(TEST),kill -0 $$programs 2>/dev/null || passing); \
	passing; cat bin/logs/programs.log; \
	$(call stages,bench-smoke); \
	echo "make: test: $$((SECONDS - began)) s"

# What e2e-devices needs: built while other clusters run.
.PHONY: qemu
qemu:
	$(STATIC) go -C test/rig run . qemu

.PHONY: test-programs
test-programs:
	@$(call stages,$(PROGRAMS))

.PHONY: test-all
test-all: ## Run test, then e2e-systemd and a crowd of 100, the suite and a crowd on Kubernetes 1.36, reach, and the start of a soak: what a finished piece of work has to pass
	@$(call stages,$(TEST_ALL))

.PHONY: nightly
nightly: ## Run what takes too long for test: cache-steps, histories, resctrl-answers, e2e-cache, e2e-power, e2e-alerts, e2e-runbooks, e2e-names, e2e-audit, fuzz and e2e-crio
	@$(call stages,$(NIGHTLY))

.PHONY: e2e-systemd-crowd
e2e-systemd-crowd:
	$(MAKE) e2e-systemd CROWD=100

.PHONY: e2e-1.36
e2e-1.36:
	$(MAKE) apiserver e2e KUBERNETES=1.36

.PHONY: soak-start
soak-start:
	$(MAKE) soak DURATION=5m

.PHONY: bench
bench: build ## Measure the driver against the kubelet and others, and write docs/benchmarks.md: 30 min on 2 quiet cores
	$(STATIC) go -C test/bench build -ldflags '-s -w' -o ../../bin/bench .
	cd test/bench; $(STATIC) ../../bin/bench

# Ratios of CPU time only, which a busy machine does not change much.
.PHONY: bench-smoke
bench-smoke: ## Run a part of bench, and fail if a ratio is more than twice the recorded one
	$(STATIC) go -C test/bench build -ldflags '-s -w' -o ../../bin/bench .
	@$(in-memory); cd test/bench; $(STATIC) ../../bin/bench -smoke

# How many nodes the clusters of scale have, and with how many attributes of a zone it
# runs this driver, too.
SIZE       ?= 100 500 2000
ATTRIBUTES ?=

.PHONY: scale
scale: build ## Have a real scheduler place pods on nodes that are only objects, this driver against others, and write docs/scale.md [SIZE=5000] [ATTRIBUTES=1,4] [KUBERNETES=]
	$(STATIC) go -C test/scale build -ldflags '-s -w' -o ../../bin/scale .
	@$(call with-clusters,scale); \
	$(STATIC) bin/scale -repository . -profiles bin/profiles -sizes '$(SIZE)' -attributes '$(ATTRIBUTES)' -kubernetes "$$KUBERNETES"

.PHONY: scale-growth
scale-growth: build ## As scale, but only this driver and the cheapest claim, with 500 and 5,000 nodes, and write docs/scale-growth.md [KUBERNETES=]
	$(STATIC) go -C test/scale build -ldflags '-s -w' -o ../../bin/scale .
	@$(call with-clusters,scale); \
	$(STATIC) bin/scale -repository . -growth -kubernetes "$$KUBERNETES"

# How many nodes the cluster of api-load has.
DAEMONS ?= 1000

.PHONY: api-load
api-load: build ## Run the daemons of many nodes against a real API server, and write docs/api-load.md [DAEMONS=1000] [KUBERNETES=]
	$(STATIC) go -C test/scale build -ldflags '-s -w' -o ../../bin/scale .
	@$(call with-clusters,scale); \
	$(STATIC) bin/scale -repository . -daemons $(DAEMONS) -kubernetes "$$KUBERNETES"

# kind.sh has what each does. Nothing here can run kind.
KIND_ENV = KIND="$$($(STATIC) go -C test/kind tool -n kind)" HELM="$$($(TOOL) -n helm)" \
  E2E=$(CURDIR)/bin/e2e.test IMAGE_ARCHIVE=bin/images/dra-driver-numa.tar

.PHONY: kind-up kind-test kind-down
kind-up: image ## Start a kind cluster with the driver, where Docker or Podman is (docs/kind.md)
	@$(KIND_ENV) deployments/kind/kind.sh up

kind-test: build suite ## Run the end-to-end suite on that cluster [FOCUS=pattern]
	@$(KIND_ENV) deployments/kind/kind.sh test

kind-down: ## Delete that cluster
	@$(KIND_ENV) deployments/kind/kind.sh down

# Steps of doctor, and the image of its pods: empty is what doctor.sh chooses.
STEPS    ?=
OBSERVER ?=

.PHONY: doctor-programs
doctor-programs: build ## Write bin/doctor: what make doctor runs, to copy to a node
	mkdir -p bin/doctor
	$(STATIC) go test -c -o bin/doctor/pin.test ./cdi/pin
	$(STATIC) go test -c -o bin/doctor/e2e.test ./test/e2e
	cp bin/kubectl-numa deployments/doctor/doctor.sh bin/doctor/

.PHONY: doctor
doctor: doctor-programs ## Run our tests on this node and the cluster of KUBECONFIG, and pack what they say (docs/doctor.md): drain the node first [STEPS="machine kernel cluster"] [FOCUS=pattern]
	@STEPS="$(STEPS)" OBSERVER="$(OBSERVER)" bin/doctor/doctor.sh bin/dra-numa-doctor.tar.gz

.PHONY: cluster-up
cluster-up: image ## Start a cluster and leave it running [TOPOLOGY=file] [KUBERNETES=1.37|1.36] [KERNEL=6.12|7.2|6.1] [BOOT=parameters] [INIT=busybox|systemd] [CRI=containerd|crio] [NODES=n]
	$(CLUSTER) up -kubernetes "$$KUBERNETES" -kernel "$$KERNEL" -boot "$$BOOT" -init "$$INIT" -cri "$$CRI" -nodes "$$NODES" $(if $(TOPOLOGY),-topology "$$TOPOLOGY")
	$(CLUSTER) load bin/images/dra-driver-numa.tar

.PHONY: cluster-exec
cluster-exec: ## Run a command as root in a node: NODE=numa-node-0 CMD='lscpu'
	@if [[ -z "$$NODE" || -z "$$CMD" ]]; then echo "usage: make cluster-exec NODE=numa-node-0 CMD='lscpu'" >&2; exit 2; fi
	@$(CLUSTER) exec -node "$$NODE" -- sh -c "$$CMD"

.PHONY: cluster-down
cluster-down: ## Stop that cluster
	$(CLUSTER) down

.PHONY: demo
demo: cluster-up ## Start a cluster, install the driver, run the demo pods, show what the kernel says and who holds what; leaves it running
	@$(call install-chart,default)
	@KUBECONFIG="$$($(CLUSTER) path kubeconfig)" $(STATIC) go run ./test/demo -kubectl-numa bin/kubectl-numa

.PHONY: clean
clean: ## Remove bin/; caches and clusters stay
	rm -rf bin
