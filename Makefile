# Every target sets up what it needs, on a machine with Python >= 3.11, git and make.

# Tests start hundreds of processes, which would compile the code anew, where containers set this.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(VENV)/bin/python
SYNC := UV_PROJECT_ENVIRONMENT=$(VENV) UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --all-extras --group dev --python $(PYTHON)

DEPS := $(VENV)/.dependencies
PROJECT := $(VENV)/.project
BENCH := $(VENV)-bench/.project
DOCS := $(VENV)-docs/.dependencies

LOWEST := $(VENV)-lowest
SATELLITES := $(wildcard runtime/typedmcp-*)
# The option takes the lowest versions of direct requirements: those of editable projects, and not those of wheels.
INSTALL_LOWEST = $(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e codegen --group test
EXTRAS := auth,cli,extensions,gateway,hosts,http,jsonschema,keyring,mcp1,otel,pydantic,redis,uvloop

RUNTIME_TESTS := tests/typedmcp_schemas tests/server/store tests/client/test_client.py \
	tests/client/test_output_validation.py tests/client/http tests/typedmcp_auth tests/typedmcp_gateway/test_pool.py tests/typedmcp_hosts tests/typedmcp_http tests/typedmcp_mcp1 \
	tests/typedmcp_otel tests/typedmcp_redis tests/typedmcp_cli/test_calls.py tests/typedmcp_cli/test_help.py

# Fail unless the variables that a target requires are set.
needs = $(foreach name,$(1),$(if $($(name)),,$(error $@ needs $(name)=…; see `make help`)))

.DEFAULT_GOAL := help
.PHONY: help generate test test-lowest test-all test-full mutants fuzz futures soak pictures check complete bump diff schema-check dist dist-check sbom import-budget figures interop conformance bench bench-codecs bench-convert bench-stdio bench-http bench-gateway bench-import bench-memory bench-large bench-instructions bench-scaling bench-latency bench-layers bench-check bench-quote docs docs-serve clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

generate: $(DEPS) ## Compile schema/ into generated/mcpspec, and leave a ready .venv
	$(RUN) -m mcpspec_codegen generate
	@$(SYNC) && touch $(PROJECT)

test: $(PROJECT) ## Run the fast tests: three minutes on two cores (ARGS="…" goes to pytest)
	$(RUN) -m pytest -n auto --dist worksteal -m "not long" $(ARGS)

test-lowest: $(PROJECT) ## Test the types, and the runtime in part, with the lowest versions of their dependencies
	@$(UV) venv --quiet --clear --python $(RUN) $(LOWEST)
	@$(INSTALL_LOWEST) -e 'codegen[migrate]' -e 'generated[pydantic]'
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal -m "not long" tests/generated $(ARGS)
	@$(INSTALL_LOWEST) -e generated -e '.[$(EXTRAS)]' $(addprefix -e ,$(SATELLITES))
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal -m "not long" $(RUNTIME_TESTS) $(ARGS)

test-all: $(PROJECT) ## Run the long tests as well: fuzzing, load, type checkers, pairs of other implementations
	$(RUN) -m pytest -n auto --dist worksteal $(ARGS)

test-full: $(PROJECT) ## Run everything before a release: full products instead of pairs, on every Python found
	@for version in 3.11 3.12 3.13 3.14; do found=$$(tools/find_python $$version) || continue; \
		FULL_PRODUCTS=1 $(MAKE) --no-print-directory test-all VENV=.venv-$$version PYTHON=$$found || exit 1; done

mutants: $(PROJECT) ## Run the tests against seeded faults, in clones in .mutants: ONLY="<faults or rooms>" JOBS=2 (ARGS="--rooms-only", "--features", "--resume", …)
	$(RUN) -m tests.mutants $(ONLY) --jobs $(or $(JOBS),1) $(ARGS)

check: $(PROJECT) ## Lint, formats, import contracts, types (mypy and pyright, strict), and drift of the generated code
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-logo
	$(RUN) -m mypy
	$(RUN) -m pyright
	$(RUN) -m mcpspec_codegen check
	@$(RUN) -m tools.unwritten

complete: $(PROJECT) ## Fail if a person still has to write something for a revision: words, vectors, facts. A release needs it
	@$(RUN) -m tools.unwritten --fail

bump: $(PROJECT) ## Import a schema: VERSION=2026-07-28|draft|ext/tasks FROM=<path or https URL> [TYPESCRIPT=<the same of schema.ts>] [COMMIT=…] [REPIN=1]
	@$(call needs,VERSION FROM)
	$(RUN) -m mcpspec_codegen bump $(VERSION) $(FROM) $(if $(TYPESCRIPT),--typescript $(TYPESCRIPT)) $(if $(COMMIT),--commit $(COMMIT)) $(if $(REPIN),--repin)
	@$(RUN) -m tools.unwritten

diff: $(PROJECT) ## Print the changes between two pinned versions: OLD=2025-11-25 NEW=2026-07-28 (ARGS="--json", "--fail-on breaking")
	@$(call needs,OLD NEW)
	@$(RUN) -m mcpspec_codegen diff $(OLD) $(NEW) $(ARGS)

schema-check: $(PROJECT) ## Prove that schema/ is upstream's files without prose: FROM=<folder>
	@$(call needs,FROM)
	$(RUN) -m mcpspec_codegen schema-check $(FROM)

dist: complete dist-check ## Build the distributions for a release, which needs `make complete`

dist-check: $(PROJECT) ## Build wheels and sdists, try the wheels with the lowest and the newest dependencies (ENDS=newest), and put them into dist/
	$(RUN) -m tools.dist $(UV) $(ENDS)

sbom: $(PROJECT) ## Write the software bill of materials, sbom.json (CycloneDX): what a release needs, with hashes
	@$(UV) export --quiet --frozen --no-dev --all-extras --format cyclonedx1.5 --output-file sbom.json >/dev/null

import-budget: $(PROJECT) ## Measure imports and the start of a server; fails over budget
	$(RUN) -m tools.import_budget

figures: $(PROJECT) ## Print figures of the code: lines, sizes of classes and functions, suppressed warnings; and write those that pages quote
	@$(RUN) -m tools.code_figures --write
	@$(RUN) -m tools.code_figures

fuzz: $(PROJECT) ## Fuzz what reads bytes of peers, following its coverage: TARGETS="frames events" SECONDS=60 (Linux)
	$(RUN) -m tests.fuzz $(TARGETS) --seconds $(or $(SECONDS),60) $(ARGS)

futures: $(PROJECT) ## Bump to plausible next revisions and check their types: COUNT=1000 SEED=1 JOBS=2 (ONLY="--only 17 --whole": one of them)
	$(RUN) -m tests.futures --count $(or $(COUNT),1000) --seed $(or $(SEED),1) --jobs $(or $(JOBS),1) $(ONLY)

soak: $(PROJECT) ## Load a server and its clients for SECONDS=120, and fail if memory rises (Linux)
	$(RUN) -m tests.soak --seconds $(or $(SECONDS),120) $(ARGS)

pictures: $(PROJECT) ## Save pictures of the page of `typedmcp dev`, of Apps, and of a terminal, in pictures/ (needs Chromium)
	TYPEDMCP_PICTURES=$(CURDIR)/pictures $(RUN) -m pytest tests/typedmcp_cli/dev/test_page_in_a_browser.py tests/typedmcp_cli/test_terminal.py \
		tests/typedmcp_extensions/apps/test_page_in_a_browser.py $(ARGS)

interop: $(PROJECT) ## Install clients and servers of others into .interop, and test them with ours
	$(RUN) -m tests.interop.install
	$(RUN) -m pytest tests/interop $(ARGS)

conformance: $(PROJECT) ## Install the official conformance suite, and run it against our server and client
	$(RUN) -m tests.interop.install py2 conformance
	$(RUN) -m tests.conformance.run $(ARGS)

# The suites whose contenders are not all in Python.
WITH_PEERS = $(if $(SUITES),$(filter stdio http latency gateway import memory large,$(SUITES)),all)

bench: $(BENCH) ## Measure against contenders, and write a report: QUICK=1 for under a minute, SUITES="codecs convert stdio http latency layers gateway import memory large instructions scaling"
	@$(if $(WITH_PEERS),$(RUN) -m tests.interop.install py2 node bridge mcp-proxy || echo "Node.js and its packages cannot be installed: no TypeScript")
	@$(if $(WITH_PEERS),$(RUN) -m tests.interop.install go || echo "the program in Go cannot be built: no Go")
	@$(if $(WITH_PEERS),$(RUN) -m tests.interop.install java || echo "the program in Java cannot be built: no Java")
	@$(if $(WITH_PEERS),$(RUN) -m tests.interop.install rust-release || echo "the program in Rust cannot be built: no Rust")
	$(VENV)-bench/bin/python -m bench $(SUITES) $(if $(QUICK),--quick) $(ARGS)

bench-codecs bench-convert bench-stdio bench-http bench-gateway bench-import bench-memory bench-large bench-instructions bench-scaling bench-latency bench-layers: ## Run one suite of the benchmarks
	@$(MAKE) --no-print-directory bench SUITES=$(@:bench-%=%)

bench-check: ## Fail if a ratio is worse than in bench/budget.toml (QUICK=1: only the ratios that are stable in a quick run)
	@$(MAKE) --no-print-directory bench ARGS="--check $(ARGS)"

bench-quote: $(PROJECT) ## Write the figures of the run in bench/quoted.toml into README and docs
	$(RUN) -m bench.quote

docs: $(DOCS) $(PROJECT) ## Build the documentation as web pages in site/; fails for broken links
	$(RUN) -m tests.docs.site
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet
	@! grep -rl '<script src="http' site # pages load no scripts from other hosts

docs-serve: $(DOCS) $(PROJECT) ## Serve these pages at http://127.0.0.1:8000, and rebuild them when a file changes
	$(RUN) -m tests.docs.site
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs serve

clean: ## Remove the environments, caches and pages of the other targets
	rm -rf .venv .venv-* .tools .interop .fuzz .mutants dist sbom.json pictures site docs/conformance docs/reference/limits.md .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# Dependencies are installed first: an editable install without generated/ would lack `mcpspec`.
$(PROJECT): $(DEPS)
	@test -d generated/mcpspec || $(RUN) -m mcpspec_codegen generate
	@$(SYNC) && touch $@

$(DEPS): pyproject.toml codegen/pyproject.toml $(addsuffix /pyproject.toml,$(SATELLITES)) uv.lock | $(filter .tools/bin/uv,$(UV))
	@$(SYNC) --no-install-workspace --no-install-package mcpspec && touch $@

# The contenders have an environment of their own, with the same versions of shared packages.
$(BENCH): $(PROJECT)
	@UV_PROJECT_ENVIRONMENT=$(VENV)-bench UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --all-extras \
		--no-default-groups --group bench --python $(PYTHON) && touch $@

# The pages are built from the source without running it, so this environment has none of our packages.
$(DOCS): pyproject.toml uv.lock | $(filter .tools/bin/uv,$(UV))
	@UV_PROJECT_ENVIRONMENT=$(VENV)-docs UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --only-group docs \
		--python $(PYTHON) && touch $@

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet uv
