# `make help` explains targets, suites and variables; test/suites/suites.yaml lists them. Every
# target does its own set-up, needs no terminal and leaves no cluster running, except those that
# say so.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The version that the programs say they are, such as v0.1.0. A release sets the
# chart's appVersion to the same.
VERSION ?= dev

# One set of flags for all but the race detector: the modules that daemon, tools
# and tests share are compiled once.
STATIC   := CGO_ENABLED=0 GOFLAGS='$(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)'
# grpcnotrace: gRPC's page of traces has templates, for which the linker keeps
# every method there is: 16 MB of the daemon's 49.
BUILD     = build -ldflags '-s -w -X github.com/dra-driver-numa/dra-driver-numa/internal/version.linked=$(VERSION) $(NEXT)' -tags grpcnotrace
GO_BUILD  = $(STATIC) go $(BUILD)
TOOL     := $(STATIC) go tool -modfile="$(CURDIR)/tools/go.mod"
CHART    := deployments/helm/dra-driver-numa
CLUSTER  := bin/cluster
IMAGE    := localhost/dra-driver-numa:dev

# NVIDIA's header says of many functions that they are old.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

# Everything with Go files of its own go.mod, this folder first.
MODULES  := . deployments/push deployments/sbom test/rig test/monitoring test/bench test/kind test/scale

.PHONY: help
help:
	@$(STATIC) go build -o bin/suites ./test/suites
	@bin/suites help

# Whatever tests or measures is a row of the table. What is given on the command line is before
# what a suite sets; what the environment has is not.
SUITES    := $(shell sed -n 's/^- suite: //p' test/suites/suites.yaml)
VARIABLES := $(shell sed -n 's/^- variable: //p' test/suites/suites.yaml)
GIVEN      = $(foreach name,$(VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)="$$$(name)"))

.PHONY: $(SUITES)
$(SUITES):
	@$(STATIC) go build -o bin/suites ./test/suites
	@exec bin/suites $@ $(GIVEN)

.PHONY: build
build:
	$(GO_BUILD) -o bin/ ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook ./cmd/kubectl-numa
	$(STATIC) go -C test/rig build -o ../../bin/cluster .

# numa-nvml is the only program that needs a C library: it runs in another image,
# which has one.
.PHONY: image
image: build cc
	mkdir -p bin/images
	CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -o bin/ ./cmd/numa-nvml
	$(STATIC) go run ./deployments/image -ref $(IMAGE) -out bin/images/dra-driver-numa.tar -entrypoint /dra-numa \
	  /dra-numa=bin/dra-numa /numa-pin=bin/numa-pin /numa-webhook=bin/numa-webhook /numa-nvml=dynamic:bin/numa-nvml

# Where the plugin of kubectl runs. All other programs run on Linux only.
PLUGIN_PLATFORMS ?= linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64 windows_arm64

.PHONY: krew
krew:
	mkdir -p bin/krew
	$(foreach platform,$(PLUGIN_PLATFORMS),$(call krew-archive,$(platform))$(newline))

define krew-archive
	$(call plugin-env,$(1)) $(GO_BUILD) -o bin/krew/ ./cmd/kubectl-numa
	$(STATIC) go run ./deployments/release $(call plugin-archive,bin/krew,bin/krew,$(1))
endef

define newline


endef

# plugin-env is what Go needs to build for the platform $(1).
plugin-env = GOOS=$(firstword $(subst _, ,$(1))) GOARCH=$(lastword $(subst _, ,$(1)))

# plugin is the name of the plugin's file on the platform $(1).
plugin = kubectl-numa$(if $(filter windows_%,$(1)),.exe)

# plugin-archive has the arguments of deployments/release that write an archive of krew to
# the folder $(1), with the program in the folder $(2), for the platform $(3). Krew unpacks
# it on Windows, too.
plugin-archive = archive $(1)/kubectl-numa_$(VERSION)_$(3).tar.gz LICENSE=LICENSE $(call plugin,$(3))=x:$(2)/$(call plugin,$(3))

# What decides the bytes of a release, apart from the source: the version of Go, and what
# links numa-nvml, the only program with C in it. CGO_PACKAGES= does without this check.
RELEASE_GO   := go1.26.8
CGO_PACKAGES ?= gcc-12=12.2.0-14+deb12u1 binutils=2.40-2 libc6-dev=2.36-9+deb12u14 \
  gcc-12-aarch64-linux-gnu=12.2.0-14cross1 binutils-aarch64-linux-gnu=2.40-2 libc6-dev-arm64-cross=2.36-8cross1
CC_amd64     := gcc
CC_arm64     := aarch64-linux-gnu-gcc
RELEASE_ENV  := GOTOOLCHAIN=$(RELEASE_GO) GOFLAGS='-trimpath -buildvcs=false' GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0
RELEASE      := bin/release
HELM         := $(TOOL) helm
# The time that SBOM and images have, and the commit that images are of.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
REVISION          ?= $(shell git rev-parse HEAD)

# The programs of the image, and what it says of itself, with names that begin with
# org.opencontainers.image.
RELEASED     := dra-numa numa-nvml numa-pin numa-webhook
IMAGE_LABELS  = title=dra-driver-numa version=$(VERSION) revision=$(REVISION) created=$(shell date --utc --date=@$(SOURCE_DATE_EPOCH) +%FT%TZ) \
  licenses=Apache-2.0 source=https://github.com/dra-driver-numa/dra-driver-numa

# Where push puts a release, such as registry.example/team: the chart has it, so a release with
# another one has other bytes.
REGISTRY ?=

# The private key that signs what is pushed, as cosign generate-key-pair writes it; empty: nothing is
# signed. COSIGN_PASSWORD is its password.
KEY    ?=
COSIGN := go tool -modfile="$(CURDIR)/tools/cosign.mod" cosign

.PHONY: release
release: cc
	@$(foreach package,$(CGO_PACKAGES),$(call is-installed,$(package)); )true
	@[[ "$$(go env GOHOSTARCH)" == amd64 ]] || { echo "make: build a release on amd64, not on $$(go env GOHOSTARCH): numa-nvml needs C compilers of amd64" >&2; exit 1; }
	rm -rf $(RELEASE) bin/release-programs; mkdir -p $(RELEASE) bin/release-programs
	$(RELEASE_ENV) CGO_ENABLED=0 go build -o bin/release-programs/ ./deployments/release ./deployments/image
	$(RELEASE_ENV) CGO_ENABLED=0 go -C deployments/sbom build -o ../../bin/release-programs/ .
	$(release-chart)
	$(foreach arch,amd64 arm64,$(call release-arch,$(arch),bin/release-programs/linux_$(arch))$(newline))
	$(foreach platform,$(PLUGIN_PLATFORMS),$(call release-plugin,$(platform),bin/release-programs/plugin_$(platform))$(newline))
	$(release-lists)

# is-installed fails unless the package $(1), a name and a version, is installed.
define is-installed
found=$$(dpkg-query --show --showformat='$${Package}=$${Version}' $(firstword $(subst =, ,$(1))) 2>/dev/null || true); \
[[ "$$found" == "$(1)" ]] || { echo "make: numa-nvml is to be built with $(1), here is $${found:-none}: install it, or set CGO_PACKAGES= and get other bytes" >&2; exit 1; }
endef

# release-chart writes the chart, and what it installs.
define release-chart
	bin/release-programs/release chart $(RELEASE) $(CHART) $(VERSION) $(REGISTRY)
	$(HELM) template dra-driver-numa $(RELEASE)/dra-driver-numa-$(VERSION:v%=%).tgz --namespace dra-numa --no-hooks | cat deployments/namespace.yaml - >$(RELEASE)/install.yaml
endef

# release-lists writes what is about the other files.
define release-lists
	bin/release-programs/release krew $(RELEASE) .krew.yaml $(VERSION)
	bin/release-programs/sbom -version $(VERSION) -time $(SOURCE_DATE_EPOCH) -out $(RELEASE)/dra-driver-numa_$(VERSION).spdx.json bin/release-programs/linux_*/* bin/release-programs/plugin_*/*
	bin/release-programs/release sums $(RELEASE)
endef

# release-plugin builds the plugin for the platform $(1) in the folder $(2), and its archive.
define release-plugin
	$(RELEASE_ENV) $(call plugin-env,$(1)) CGO_ENABLED=0 go $(BUILD) -o $(2)/ ./cmd/kubectl-numa
	bin/release-programs/release $(call plugin-archive,$(RELEASE),$(2),$(1))
endef

# release-arch builds what a release has for Linux on the architecture $(1): programs in the
# folder $(2), and archives and image of them.
define release-arch
	$(RELEASE_ENV) GOOS=linux GOARCH=$(1) CGO_ENABLED=0 go $(BUILD) -o $(2)/ ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook
	$(RELEASE_ENV) GOOS=linux GOARCH=$(1) CGO_ENABLED=1 CC=$(CC_$(1)) go build -ldflags '-s -w' -o $(2)/ ./cmd/numa-nvml
	bin/release-programs/release archive $(RELEASE)/dra-driver-numa_$(VERSION)_linux_$(1).tar.gz LICENSE=LICENSE $(foreach name,$(RELEASED),$(name)=x:$(2)/$(name))
	bin/release-programs/release licenses $(2).licenses $(2)/*
	bin/release-programs/image -arch $(1) -ref localhost/dra-driver-numa:$(VERSION) -out $(RELEASE)/dra-driver-numa-image_$(VERSION)_linux_$(1).tar \
	  -compress $(foreach label,$(IMAGE_LABELS),-label org.opencontainers.image.$(label)) -entrypoint /dra-numa \
	  /licenses/LICENSE=LICENSE /licenses/THIRD_PARTY_LICENSES=$(2).licenses $(foreach name,$(RELEASED),/$(name)=$(if $(filter numa-nvml,$(name)),dynamic:)$(2)/$(name))
endef

# What is pushed and signed says of which commit it is. A registry on this machine takes any tree.
ifneq ($(and $(filter push,$(MAKECMDGOALS)),$(filter-out localhost:% 127.0.0.1:%,$(REGISTRY))),)
  UNCOMMITTED := $(shell git status --porcelain | cut -c 4-)
  TAGGED      := $(shell git rev-parse --verify --quiet 'refs/tags/$(VERSION)^{commit}')
  $(if $(UNCOMMITTED),$(error make push: commit or remove these files first: $(UNCOMMITTED)))
  $(if $(filter-out $(shell git rev-parse HEAD),$(TAGGED)),$(error make push: the tag $(VERSION) is of another commit: check that out, or choose another VERSION))
endif

.PHONY: push
push: $(if $(REGISTRY),release)
	@[[ -n "$(REGISTRY)" ]] || { echo "usage: make push VERSION=v0.1.0 REGISTRY=registry.example/team [KEY=cosign.key]" >&2; exit 2; }
	$(STATIC) go -C deployments/push build -o ../../bin/release-programs/ .
	bin/release-programs/push $(RELEASE) $(VERSION) $(REGISTRY) | tee bin/release-programs/pushed
	$(if $(KEY),$(STATIC) xargs -n 1 $(COSIGN) sign --yes --key '$(KEY)' --use-signing-config=false --tlog-upload=false <bin/release-programs/pushed)

# The second build is of the same files in another folder, with other times and modes, another
# umask and time zone, and without anything that an earlier build has left.
.PHONY: release-again
release-again: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
release-again: export REVISION := $(REVISION)
release-again:
	@helm=$$($(TOOL) -n helm); again=$$(mktemp -d); trap 'rm -rf "$$again"' EXIT; there="$$again/elsewhere"; mkdir "$$there" "$$again/cache"; \
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$$there"; \
	find "$$there" -type f -exec chmod g+w {} + -exec touch -d 2001-02-03 {} +; \
	(umask 077; export TZ=Asia/Kathmandu GOCACHE="$$again/cache"; $(MAKE) --no-print-directory -C "$$there" release HELM="$$helm"); \
	diff $(RELEASE)/SHA256SUMS "$$there/$(RELEASE)/SHA256SUMS"; echo "make: both builds have the same bytes"
	@for path in bin/release-programs/*linux_*/*; do \
	  emulator=; [[ $$path != *_arm64/* ]] || emulator=$$(command -v qemu-aarch64-static || command -v qemu-aarch64) || \
	    { echo "make: $$path was not started: there is no qemu-aarch64 (package qemu-user-static)"; continue; }; \
	  QEMU_LD_PREFIX=/usr/aarch64-linux-gnu $$emulator $$path --help >/dev/null; \
	done

# apt-install installs Debian packages $(1), with new lists of packages where the present ones, if
# there are any, do not do.
apt-install = { apt-get install --yes --no-install-recommends $(1) || \
  { apt-get update && apt-get install --yes --no-install-recommends $(1); }; }

# The race detector needs a C compiler, and numa-nvml of a release one for arm64, too.
release: CROSS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross

.PHONY: cc
cc:
	@{ command -v $${CC:-gcc} && command -v $(if $(CROSS),$(CC_arm64),true); } >/dev/null || { \
	  command -v apt-get >/dev/null || { echo 'make: no C compiler: install gcc and the C library headers$(if $(CROSS), for amd64 and arm64)' >&2; exit 1; }; \
	  $(call apt-install,gcc libc6-dev $(CROSS)); }

# test/hwloc compares our reader with lstopo, and cluster/holdings/web looks at its pages with
# chromium. Where they are not and cannot be installed, the tests skip.
.PHONY: unit-tools
unit-tools:
	@command -v lstopo-no-graphics >/dev/null || ! command -v apt-get >/dev/null || \
	  $(call apt-install,hwloc-nox) || echo "make: no lstopo: its tests skip" >&2
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || \
	  $(call apt-install,chromium) || echo "make: no chromium: its tests skip" >&2

# release-again starts the programs for arm64 with it, and says so where there is none.
.PHONY: qemu-user
qemu-user:
	@command -v qemu-aarch64-static qemu-aarch64 >/dev/null || ! command -v apt-get >/dev/null || \
	  $(call apt-install,qemu-user-static) || echo "make: no qemu-aarch64: programs for arm64 are not started" >&2

# VitePress, which writes the site, comes from npm.
.PHONY: npm
npm:
	@command -v npm >/dev/null || $(call apt-install,npm)

# test/empty makes a Debian with it.
.PHONY: mmdebstrap
mmdebstrap:
	@command -v mmdebstrap >/dev/null || $(call apt-install,mmdebstrap)

.PHONY: lint
lint: cc
	@for module in $(MODULES); do \
	  echo "golangci-lint run ($$module)"; \
	  (cd $$module && $(TOOL) golangci-lint run --config "$(CURDIR)/.golangci.yaml" ./...); \
	done
	CGO_ENABLED=1 $$($(TOOL) -n golangci-lint) run --config "$(CURDIR)/.golangci.yaml" ./cmd/numa-nvml
	@unreached=$$($(TOOL) deadcode ./cmd/...); [[ -z "$$unreached" ]] || { printf '%s\n' "$$unreached" >&2; exit 1; }
	$(STATIC) go run ./test/typecheck ./cmd/kubectl-numa darwin windows

.PHONY: fmt
fmt:
	@for module in $(MODULES); do \
	  (cd $$module && $(TOOL) golangci-lint fmt --config "$(CURDIR)/.golangci.yaml" ./...); \
	done

GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# It looks at the Go of a release, too. Its database is not in a module: without it, nothing was
# checked, which is no failure.
.PHONY: vulncheck
vulncheck: cc
	@check() { $(RELEASE_ENV) CGO_ENABLED=$$1 go run $(GOVULNCHECK) "$${@:2}" 2>&1; }; status=0; \
	output=$$(check 0 ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook ./cmd/kubectl-numa && check 1 ./cmd/numa-nvml) || status=$$?; \
	if (( status )) && grep -qE 'vuln\.go\.dev|fetching vulnerabilities' <<<"$$output"; then \
	  echo "vulncheck: not checked: $$(grep -m 1 -E 'vuln\.go\.dev|fetching vulnerabilities' <<<"$$output")"; \
	else \
	  printf '%s\n' "$$output"; exit $$status; \
	fi

# How long each fuzz test runs.
FUZZTIME ?= 30s

.PHONY: fuzz
fuzz:
	@grep -rHoE --include='*_test.go' --exclude-dir=rig '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file name; do \
	  name=$${name#func }; echo "make: fuzz $$name ($$(dirname $$file))"; \
	  $(STATIC) go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$(dirname $$file) </dev/null; \
	done

# The suite is built before a node takes the CPUs.
.PHONY: suite
suite:
	$(STATIC) go test -c -o bin/e2e.test ./test/e2e

# What e2e-devices and e2e-cache need: built while other clusters run.
.PHONY: qemu
qemu:
	$(STATIC) go -C test/rig run . qemu

# What drives devices of a node, beside the driver: another driver, and a made-up library of NVIDIA.
.PHONY: devices-images
devices-images:
	$(GO_BUILD) -o bin/gpudriver ./test/gpudriver
	$(STATIC) go run ./deployments/image -ref localhost/gpudriver:dev -out bin/images/gpudriver.tar -entrypoint /gpudriver /gpudriver=bin/gpudriver
	$${CC:-gcc} -shared -fPIC -I"$$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml" -o bin/libnvidia-ml.so.1 test/nvml/nvml.c
	$(STATIC) go run ./deployments/image -ref localhost/nvml:dev -out bin/images/nvml.tar /usr/lib/libnvidia-ml.so.1=bin/libnvidia-ml.so.1 \
	  $$(ldd bin/numa-nvml | awk '{ for (i = 1; i <= NF; i++) if ($$i ~ /^\//) print $$i "=dynamic:" $$i }')

# What upgrade-test upgrades from: a tag or a commit. Without tags, it is the last commit that
# changed a format, or labels of the chart.
FROM ?= $(or $(shell git tag --list 'v*' --sort=-version:refname | head -n 1),410653b2b641650264b20a7bdfb35edb1d204fa4)

# Built outside of this folder: go would take it for a part of the module.
.PHONY: upgrade-from
upgrade-from:
	@from=$$(mktemp -d); trap 'rm -rf "$$from"' EXIT; git archive $(FROM) | tar -x -C "$$from"; \
	rm -rf bin/upgrade; mkdir -p bin/upgrade; \
	(cd "$$from"; $(GO_BUILD) -o "$(CURDIR)/bin/upgrade/" ./cmd/dra-numa ./cmd/numa-pin ./cmd/numa-webhook); \
	cp -r "$$from/$(CHART)" bin/upgrade/chart
	$(STATIC) go run ./deployments/image -ref localhost/dra-driver-numa:from -out bin/images/from.tar -entrypoint /dra-numa \
	  /dra-numa=bin/upgrade/dra-numa /numa-pin=bin/upgrade/numa-pin /numa-webhook=bin/upgrade/numa-webhook

# A made-up next release: this tree, with a checkpoint of version 2 that has one more field.
.PHONY: upgrade-next
upgrade-next: NEXT = -X github.com/dra-driver-numa/dra-driver-numa/driver/ledger.nextRelease=next
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

# kind.sh has what each does. Nothing here can run kind.
KIND_ENV = KIND="$$($(STATIC) go -C test/kind tool -n kind)" HELM="$$($(TOOL) -n helm)" \
  E2E="$(CURDIR)/bin/e2e.test" IMAGE_ARCHIVE=bin/images/dra-driver-numa.tar

.PHONY: kind-up kind-test kind-down
kind-up: image
	@$(KIND_ENV) deployments/kind/kind.sh up

kind-test: build suite
	@$(KIND_ENV) deployments/kind/kind.sh test

kind-down:
	@$(KIND_ENV) deployments/kind/kind.sh down

# Steps of doctor, and the image of its pods: empty is what doctor.sh chooses.
STEPS    ?=
OBSERVER ?=

.PHONY: doctor-programs
doctor-programs: build
	mkdir -p bin/doctor
	$(STATIC) go test -c -o bin/doctor/pin.test ./cdi/pin
	$(STATIC) go test -c -o bin/doctor/e2e.test ./test/e2e
	cp bin/kubectl-numa deployments/doctor/doctor.sh bin/doctor/

.PHONY: doctor
doctor: doctor-programs
	@STEPS="$(STEPS)" OBSERVER="$(OBSERVER)" bin/doctor/doctor.sh bin/dra-numa-doctor.tar.gz

.PHONY: cluster-exec
cluster-exec:
	@if [[ -z "$${NODE-}" || -z "$${CMD-}" ]]; then echo "usage: make cluster-exec NODE=numa-node-0 CMD='lscpu'" >&2; exit 2; fi
	@$(CLUSTER) exec -node "$$NODE" -- sh -c "$$CMD"

.PHONY: cluster-down
cluster-down:
	$(CLUSTER) down

.PHONY: clean
clean:
	rm -rf bin
