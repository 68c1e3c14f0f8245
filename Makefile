# Everything that people and CI do with this repository. `make help` lists the targets.
# It needs Go 1.26 and the binaries of the PostgreSQL server. Go itself builds or downloads the rest.

GO ?= go
# The installed toolchain is used; Go does not download another one.
export GOTOOLCHAIN ?= local
# A checkout that git does not trust (of another owner, as in containers) is built without its revision.
BUILDVCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)
TOOL := $(GO) tool -modfile=.ci/tools/go.mod
# For make test: `make test TESTFLAGS='-race -run TestSlim'`, `make test PACKAGES=./pipeline/...`.
TESTFLAGS ?=
PACKAGES ?= ./...
# For make bench and make fuzz.
BENCH ?= .
FUZZTIME ?= 20s
# For make histories.
RELEASE ?= next
# ST1005 wants errors in lower case, but Temporal and other names begin with a capital. unused (U1000) is on by default.
CHECKS := inherit,-ST1005
# Nested modules: their dependencies conflict with those of the main module, or are only for checks or examples.
NESTED := internal/devstack/temporal .ci/compose examples/childworkflow

.DEFAULT_GOAL := help
.PHONY: help build demo test hostile lint fmt bench fuzz histories clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/precis and bin/worker
	@echo "building bin/precis and bin/worker (the first build downloads modules and takes minutes, later ones seconds)"
	@start=$$(date +%s); mkdir -p bin && \
	$(GO) build -buildvcs=$(BUILDVCS) -trimpath -o bin/precis ./starter && \
	$(GO) build -buildvcs=$(BUILDVCS) -trimpath -o bin/worker ./worker && \
	echo "built in $$(($$(date +%s) - start)) s"

demo: build ## compact a transcript on a private Postgres and Temporal, and show the result
	bin/precis demo

test: ## run every test, with a private Postgres and Temporal
	$(GO) run -buildvcs=false ./internal/devstack/cmd/withstack -- $(GO) test -timeout=20m $(TESTFLAGS) $(PACKAGES)

hostile: ## run the tests of docs/security.md: what attackers try, and what holds
	$(GO) run -buildvcs=false ./internal/devstack/cmd/withstack -- .ci/hostile

lint: ## formatting, vet, staticcheck, unreachable code, determinism of the workflows, the compose file
	@echo "gofumpt"; unformatted=$$($(TOOL) gofumpt -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	@echo "vet"; $(GO) vet ./...
	@for m in $(NESTED); do echo "vet $$m"; $(GO) -C $$m vet ./... || exit 1; done
	@echo "staticcheck"; $(TOOL) staticcheck -checks=$(CHECKS) ./...
	@echo "deadcode"; .ci/deadcode $(TOOL) deadcode
	@echo "workflowcheck"; $(TOOL) workflowcheck . ./workflows/...
	@cd examples/childworkflow && $(GO) tool -modfile=../../.ci/tools/go.mod workflowcheck ./...
	@# Without the cache, because the test reads files outside of its module.
	@echo "compose file"; $(GO) -C .ci/compose test -count=1 ./...

fmt: ## format all Go files
	$(TOOL) gofumpt -w .

bench: ## benchmarks: make bench BENCH=Slim
	$(GO) test -run='^$$' -bench='$(BENCH)' -benchmem $(PACKAGES)

histories: ## record workflow histories of a release, which all later builds replay: make histories RELEASE=v1.2
	$(GO) run -buildvcs=false ./internal/devstack/cmd/withstack -- \
		$(GO) test -count=1 ./workflows -run TestRecordedHistoriesReplay -update -release $(RELEASE)

fuzz: ## run each fuzz target: make fuzz FUZZTIME=5m
	@grep -rlE --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$target, $(FUZZTIME)"; \
			$(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
		done; \
	done

clean: ## remove the built programs and the local stack with its data
	@[ ! -x bin/precis ] || bin/precis down
	rm -rf bin .precis
