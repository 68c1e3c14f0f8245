# Everything a person or CI does with this repository. `make help` lists it.
# Needed: Go 1.26 and the PostgreSQL server's binaries. The rest is built or downloaded by Go itself.

GO ?= go
# The toolchain that is there is used; none is downloaded behind your back.
export GOTOOLCHAIN ?= local
# A checkout that git does not trust (another owner, as in containers) is built without its revision.
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
# ST1005 wants errors in lower case and without a full stop; ours quote vendors, and Temporal keeps its capital.
CHECKS := inherit,-ST1005
# Modules of their own: their dependencies do not agree with the main one's, or are for checks alone.
NESTED := internal/devstack/temporal .ci/compose examples/childworkflow

.DEFAULT_GOAL := help
.PHONY: help build demo test lint fmt bench fuzz histories clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/precis and bin/worker
	@echo "building bin/precis and bin/worker (a first build downloads modules and takes minutes, later ones seconds)"
	@start=$$(date +%s); mkdir -p bin && \
	$(GO) build -buildvcs=$(BUILDVCS) -trimpath -o bin/precis ./starter && \
	$(GO) build -buildvcs=$(BUILDVCS) -trimpath -o bin/worker ./worker && \
	echo "built in $$(($$(date +%s) - start)) s"

demo: build ## compact a transcript on a private Postgres and Temporal, and show what became of it
	bin/precis demo

test: ## every test, on a Postgres and a Temporal of its own
	$(GO) run -buildvcs=false ./internal/devstack/cmd/withstack -- $(GO) test -timeout=20m $(TESTFLAGS) $(PACKAGES)

lint: ## formatting, vet, staticcheck, determinism of the workflows, the compose file
	@echo "gofumpt"; unformatted=$$($(TOOL) gofumpt -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	@echo "vet"; $(GO) vet ./...
	@for m in $(NESTED); do echo "vet $$m"; $(GO) -C $$m vet ./... || exit 1; done
	@echo "staticcheck"; $(TOOL) staticcheck -checks=$(CHECKS) ./...
	@echo "workflowcheck"; $(TOOL) workflowcheck . ./workflows/...
	@cd examples/childworkflow && $(GO) tool -modfile=../../.ci/tools/go.mod workflowcheck ./...
	@echo "compose file"; $(GO) -C .ci/compose test -count=1 ./... # what it reads is outside of its module: a cached result may be stale

fmt: ## format all Go files
	$(TOOL) gofumpt -w .

bench: ## benchmarks: make bench BENCH=Slim
	$(GO) test -run='^$$' -bench='$(BENCH)' -benchmem $(PACKAGES)

histories: ## record workflow histories of a release, to be replayed by all later builds: make histories RELEASE=v1.2
	$(GO) run -buildvcs=false ./internal/devstack/cmd/withstack -- $(GO) test -count=1 ./workflows -run TestRecordedHistoriesReplay -update -release $(RELEASE)

fuzz: ## each fuzz target in turn: make fuzz FUZZTIME=5m
	@grep -rlE --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$target, $(FUZZTIME)"; \
			$(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
		done; \
	done

clean: ## remove what was built and the local stack with its data
	@[ ! -x bin/precis ] || bin/precis down
	rm -rf bin .precis
