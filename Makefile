# Every target does its own set-up on a machine with Python >= 3.11, git and make.

PYTHON ?= python3
VENV ?= .venv
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(VENV)/bin/python
SYNC := UV_PROJECT_ENVIRONMENT=$(VENV) UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --all-extras --group dev --python $(PYTHON)

DEPS := $(VENV)/.dependencies
PROJECT := $(VENV)/.project
BENCH := $(VENV)-bench/.project
DOCS := $(VENV)-docs/.dependencies

# What a target needs to be told.
needs = $(foreach name,$(1),$(if $($(name)),,$(error $@ needs $(name)=…; see `make help`)))

.DEFAULT_GOAL := help
.PHONY: help generate test check bump diff schema-check dist-check import-budget interop conformance bench bench-codecs bench-stdio bench-http bench-import bench-memory bench-check bench-quote docs docs-serve clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

generate: $(DEPS) ## Compile schema/ into generated/mcpspec, and leave a ready .venv
	$(RUN) -m codegen generate
	@$(SYNC) && touch $(PROJECT)

test: $(PROJECT) ## Run the tests (FAST=1 leaves out the long ones, ARGS="…" goes to pytest)
	$(RUN) -m pytest -n auto $(if $(FAST),-m "not long") $(ARGS)

check: $(PROJECT) ## Lint, formats, types (mypy and pyright, strict), and drift of the generated code
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pyright
	$(RUN) -m codegen check

bump: $(PROJECT) ## Take in a schema: VERSION=2026-07-28 FROM=<path or https URL> [COMMIT=…] [REPIN=1]
	@$(call needs,VERSION FROM)
	$(RUN) -m codegen bump $(VERSION) $(FROM) $(if $(COMMIT),--commit $(COMMIT)) $(if $(REPIN),--repin)

diff: $(PROJECT) ## Say what changed between two pinned versions: OLD=2025-11-25 NEW=2026-07-28
	@$(call needs,OLD NEW)
	@$(RUN) -m codegen diff $(OLD) $(NEW)

schema-check: $(PROJECT) ## Prove that schema/ is upstream's files without prose: FROM=<folder>
	@$(call needs,FROM)
	$(RUN) -m codegen schema-check $(FROM)

dist-check: $(PROJECT) ## Build wheel and sdist, and try the wheel in an empty environment
	$(RUN) tools/dist_check.py $(UV)

import-budget: $(PROJECT) ## Print what importing and starting cost; fails over budget
	$(RUN) -m tools.import_budget

interop: $(PROJECT) ## Install the clients and servers of others into .interop, and have them talk to ours
	$(RUN) -m tests.interop.install
	$(RUN) -m pytest tests/interop $(ARGS)

conformance: $(PROJECT) ## Install the official conformance suite, and run it against our server and client
	$(RUN) -m tests.interop.install py2 conformance
	$(RUN) -m tests.conformance.run $(ARGS)

bench: $(BENCH) ## Measure against contenders, and write a report: QUICK=1 for under a minute, SUITES="codecs stdio http import memory"
	@$(RUN) -m tests.interop.install py2 node || echo "Node.js and its packages cannot be installed: no TypeScript"
	$(VENV)-bench/bin/python -m bench $(SUITES) $(if $(QUICK),--quick) $(ARGS)

bench-codecs bench-stdio bench-http bench-import bench-memory: ## The same for one of them
	@$(MAKE) --no-print-directory bench SUITES=$(@:bench-%=%)

bench-check: ## Fail where a ratio is worse than bench/budget.toml (QUICK=1 for those that are steady)
	@$(MAKE) --no-print-directory bench ARGS="--check $(ARGS)"

bench-quote: $(PROJECT) ## Put the figures of the run that bench/quoted.toml names into README and docs
	$(RUN) -m bench.quote

docs: $(DOCS) ## Build the documentation as web pages into site/; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet
	@! grep -rl '<script src="http' site # pages load nothing from elsewhere

docs-serve: $(DOCS) ## Serve these pages at http://127.0.0.1:8000, and build them again where a file changes
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs serve

clean: ## Remove the environments, caches and pages that the other targets made
	rm -rf .venv .venv-* .tools .interop dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache

# An editable install made while generated/ is missing would leave `mcpspec` out: dependencies come first.
$(PROJECT): $(DEPS)
	@test -d generated/mcpspec || $(RUN) -m codegen generate
	@$(SYNC) && touch $@

$(DEPS): pyproject.toml uv.lock | $(filter .tools/bin/uv,$(UV))
	@$(SYNC) --no-install-project && touch $@

# The contenders have an environment of their own, with the same versions of what they share with ours.
$(BENCH): $(PROJECT)
	@UV_PROJECT_ENVIRONMENT=$(VENV)-bench UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --all-extras \
		--no-default-groups --group bench --python $(PYTHON) && touch $@

# What builds the pages reads the code, and does not run it: this needs nothing of ours installed.
$(DOCS): pyproject.toml uv.lock | $(filter .tools/bin/uv,$(UV))
	@UV_PROJECT_ENVIRONMENT=$(VENV)-docs UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --only-group docs \
		--python $(PYTHON) && touch $@

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet uv
