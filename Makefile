# Every target installs Node, if the machine's is too old, and the packages of the lockfile on first use (.ci/exec).
.DEFAULT_GOAL := help
SHELL := /bin/sh

X := .ci/exec
JEST := $(X) env NODE_OPTIONS="--experimental-vm-modules --disable-warning=ExperimentalWarning" jest --reporters=./.ci/reporter.js --max-workers=$(or $(MAX_WORKERS),2)

.PHONY: help run test lint prices gateway-api format generate gen-check golden e2e conformance bench images console proxyctl release docs clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run a gateway with example routes; DIR=manifests or CONFIG=file.yaml for your own
	@exec $(X) $(if $(filter e2e/examples/%,$(DIR)),,--production) node e2e/harness/standalone.ts $(if $(CONFIG),--config '$(CONFIG)','$(or $(DIR),e2e/examples/quickstart)')

test: ## run unit, property and behaviour tests; T=path for some of them
	@$(JEST) $(T)

lint: ## check format, lint rules, types and dead code
	@status=0; \
	$(X) oxfmt --check . || status=1; \
	$(X) oxlint || status=1; \
	$(X) tsc -p . || status=1; \
	$(X) tsc -p console || status=1; \
	$(X) knip --no-progress || status=1; \
	exit $$status

prices: ## update the built-in price catalog of LLMs from a public list; FILE=list.json reads a copy
	@$(X) node api/codegen/prices.ts $(if $(FILE),--file '$(FILE)')

gateway-api: ## update the schemas of Gateway API that lint and the directory source evaluate, from its Go modules (needs Go)
	@$(X) node api/codegen/gateway-api.ts $$(sed -n 's/^GATEWAY_API=$$(module \(.*\))/\1/p; s/^INFERENCE_API=$$(module \(.*\))/\1/p' e2e/suites/contract/run | \
	  while read -r module; do PATH=$$(.ci/go):$$PATH .ci/again go mod download -json "$$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'; done)

format: ## format all files
	@$(X) oxfmt .

generate: ## write gen, docs/reference and the CRDs of charts from api
	@$(X) node api/codegen/main.ts
	@$(X) node e2e/suites/house/main.ts

gen-check: ## check that generated files are up to date and committed
	@$(X) node api/codegen/main.ts --check
	@git diff --exit-code --stat -- gen docs/reference charts || { echo 'generated files differ from the commit: commit them' >&2; exit 1; }
	@untracked=$$(git ls-files --others --exclude-standard -- gen docs/reference charts); \
	  [ -z "$$untracked" ] || { printf 'generated files are not in git:\n%s\n' "$$untracked" >&2; exit 1; }

golden: ## update the translator's expected outputs; review the diff
	@$(X) env UPDATE_GOLDEN=1 NODE_OPTIONS=--experimental-vm-modules jest operator/translate

e2e: ## run end-to-end tests on Kubernetes and with other programs; PARTS="contract install" for some (root; the first run builds for some minutes)
	@e2e/run $(PARTS)

bench: ## run benchmarks against nginx; CASE=plain,http2 SECONDS=5 ROUNDS=3; PEERS=1 compares with other gateways
	@$(X) node e2e/bench/main.ts $(if $(CASE),--case $(CASE)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(PEERS),--peers)

conformance: ## run the official suites of Gateway API and its Inference Extension on a local cluster (root, Go); KEEP=1 updates their reports
	@e2e/conformance/run $(if $(KEEP),--keep)

images: ## build container images of operator and data plane in dist/images; REGISTRY=localhost TAG=v0.2.0 BASE=image-with-node
	@$(X) node images/main.ts $(if $(REGISTRY),--registry '$(REGISTRY)') $(if $(TAG),--tag '$(TAG)') $(if $(BASE),--base '$(BASE)')

console: ## build the console into dist/console, where a data plane of this checkout serves it
	@$(X) node images/make-console.ts

proxyctl: ## write proxyctl as one file that needs Node only: dist/proxyctl/proxyctl.cjs
	@$(X) node images/proxyctl.ts

release: ## write all files of a release to dist/release; VERSION=v0.2.0 REPOSITORY=owner/name REGISTRY=ghcr.io/owner/name BASE=image-with-node IMAGES=no EXECUTABLES=no|DIR
	@$(X) node images/release/main.ts --version '$(VERSION)' $(if $(REPOSITORY),--repository '$(REPOSITORY)') $(if $(REGISTRY),--registry '$(REGISTRY)') $(if $(BASE),--base '$(BASE)') $(if $(filter no,$(IMAGES)),--no-images) $(if $(filter no,$(EXECUTABLES)),--no-executables,$(if $(EXECUTABLES),--executables '$(EXECUTABLES)'))

docs: ## build the documentation site in dist/docs; BASE=/path/ if it is published below a path
	@docs/site/build

clean: ## remove outputs of builds and tests
	rm -rf dist coverage e2e/bench/out/*.tmp
