# `make demo` and `make test` need nothing but Python 3.11 or newer and make: they create the environment themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SIZE ?= full
READY := $(VENV)/.ready

.PHONY: help install demo test lower-bounds bench docs check format clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(READY) ## create the environment and install everything into it

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lading needs Python 3.11 or newer; found $$($(PYTHON) --version)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY) ## the whole way, on data and a model made on the spot
	$(BIN)/lading demo

test: $(READY) ## run all tests
	$(BIN)/pytest

lower-bounds: ## test with the lowest versions that pyproject.toml promises, in an environment that is removed again
	PYTHON=$(PYTHON) .ci/lower-bounds

bench: $(READY) ## ours against the reference, side by side; SIZE=small to see that it works
	$(BIN)/python -m benchmarks.run $(if $(filter small,$(SIZE)),--small)

docs: $(READY) ## build the documentation into site/; a broken link or a missing page fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check: $(READY) ## formatter, linter, strict types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## let the formatter and linter mend what they can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the environment and everything made
	rm -rf $(VENV) demo-out site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
