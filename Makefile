# Everything that is needed is set up on first use, in .venv.
#   make demo     build the quickstart knowledge base and its site, offline
#   make test     lint, types, layers, all tests with coverage
#   make lint     the first half of that
#   make bench    speed and quality, as tables
#   make soak     the fault and property tests, ROUNDS times
#   make site     the guides and the exported knowledge bases of WORKSPACE, as one site
#   make notebooks  run the notebooks, so that the site shows their output
#   make lab      JupyterLab on the notebooks
#   make clean    remove what was built, and .venv

PYTHON ?= python3
WORKSPACE ?= kb
ROUNDS ?= 10

BIN := .venv/bin
RUN := .venv/.run-installed
DEV := .venv/.dev-installed
COVERAGE := --cov --cov-report=

.DELETE_ON_ERROR:
.PHONY: demo test lint bench soak site notebooks lab clean

demo: $(RUN)
	$(BIN)/python recipes/demo.py

# Browser tests run by themselves: JupyterLab and Chromium want both cores.
test: lint
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n 2 -m "not browser" $(COVERAGE)
	$(BIN)/python -m pytest -m browser $(COVERAGE) --cov-append
	$(BIN)/coverage report

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV)
	$(BIN)/python -m pip install --quiet --group bench
	set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script; done

soak: $(DEV)
	set -e; for round in $$(seq $(ROUNDS)); do \
		echo "== round $$round of $(ROUNDS)"; \
		KBKIT_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/faults tests/ingest/test_chunking.py \
			-o timeout=1800; \
	done

# Pages of knowledge bases go into the guides' folder, so that one site has one search.
site: $(RUN)
	set -e; for docs in "$(WORKSPACE)"/export/*/docs; do \
		if [ -d "$$docs" ]; then \
			name=$$(basename "$$(dirname "$$docs")"); \
			mkdir -p site/kb; rm -rf "site/kb/$$name"; cp -R "$$docs" "site/kb/$$name"; \
		fi; \
	done
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: $(DEV)
	$(BIN)/python site/_notebooks.py

lab: $(DEV)
	$(BIN)/jupyter lab --notebook-dir=notebooks

clean:
	rm -rf .venv build dist .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"kbkit needs Python 3.11 or newer: make ... PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

$(RUN): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e .
	touch $(RUN)

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e . --group dev
	touch $(RUN) $(DEV)
