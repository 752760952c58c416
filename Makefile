# Everything that is needed is set up on first use, in .venv.
#   make demo     build the quickstart knowledge base and its site, offline
#   make test     venv, lint, tests and browser, one after the other
#   make venv     install kbkit and the tools of development, in the versions of constraints.txt
#   make lint     lint, types, layers, words, size, unit tests of the JavaScript
#   make size     lines of code and docstrings by room; fails above the budget
#   make tests    the tests that need no browser
#   make browser  the tests that need Chromium
#   make slow     the tests that are too slow for `make test`
#   make postgres tests of stores, ingest and retrieval again, with catalogs on a PostgreSQL server
#   make lock     write the newest releases of all dependencies into constraints.txt
#   make latest   test with the newest releases, in a venv of its own
#   make lowest   test with the oldest releases that pyproject.toml allows, likewise
#   make core     the base install by itself, in a venv of its own
#   make dist     the wheel and the source distribution, in dist/
#   make sbom     what kbkit with all extras consists of, as CycloneDX, in build/sbom
#   make audit    that, and whether any of it has known vulnerabilities; asks the network
#   make coverage all tests, and which lines they do not reach; takes twice as long
#   make bench    speed and quality, as tables in build/bench; an hour or more on two cores
#   make soak     the tests that take long; mutants that they have to kill; the fault and property tests, ROUNDS times;
#                 Lighthouse on the demo's site
#   make publish  what CI does to rebuild the site, on the quickstart recipe, offline
#   make site     the guides and the exported knowledge bases of WORKSPACE, as one site
#   make notebooks  run the notebooks, so that the site shows their output
#   make lab      JupyterLab on the notebooks
#   make clean    remove what was built, and .venv

PYTHON ?= python3
WORKSPACE ?= kb
ROUNDS ?= 10

# Tests start hundreds of processes, of which each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
RUN := .venv/.run-installed
DEV := .venv/.dev-installed
NODE_MODULES := tests/js/node_modules/.package-lock.json

.DELETE_ON_ERROR:
.PHONY: demo test venv tests browser slow postgres latest lock lint style size types javascript workflows coverage lowest core dist sbom audit bench soak publish \
	site notebooks lab clean

demo: $(RUN)
	$(BIN)/python recipes/demo.py

# All parts run, even when one fails; how long each took is printed at the end.
GATE = $(PYTHON) tests/gate.py
test:
	$(GATE) venv lint tests browser

venv: $(DEV)

# Two processes, each with one thread for its matrices: with more they wait for each other. The tests
# of a file run in one of them, in order: they share their fixtures.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
WORKERS ?= 2
QUICK := not slow and not soak
CACHE ?= .pytest_cache
PYTEST = $(BIN)/python -m pytest -o cache_dir=$(CACHE) $(AGAIN) -n $(WORKERS) --dist loadfile --durations 40
tests: $(DEV)
	$(ONE_THREAD) $(PYTEST) -m "not browser and $(QUICK)"

# Only the files that have such tests are collected.
IN_A_BROWSER := grep -rl --include='test_*.py' 'mark\.browser' tests
browser: $(DEV)
	$(PYTEST) -m "browser and $(QUICK)" $$($(IN_A_BROWSER))

# Apart, since a browser's driver has an event loop that runs in its process.
slow: $(DEV)
	$(PYTEST) -m "slow and not browser and not soak"
	$(PYTEST) -m "slow and browser and not soak" $$($(IN_A_BROWSER))

# The tests that ask a catalog (not those marked `local`), on a PostgreSQL server: Debian's or a wheel's.
postgres: $(DEV)
	$(ONE_THREAD) KBKIT_TEST_DATABASE=postgresql $(PYTEST) \
		-m "not browser and $(QUICK)" tests/stores tests/ingest tests/retrieval

coverage: $(DEV)
	rm -f .coverage .coverage.*
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not browser" --cov --cov-report=
	$(BIN)/python -m pytest -m browser --cov --cov-report= --cov-append $$($(IN_A_BROWSER))
	$(BIN)/coverage report

lint: $(DEV)
	@$(MAKE) --no-print-directory -j 2 types style workflows javascript

style: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python tests/prose.py
	$(BIN)/python tests/size.py > /dev/null

size: $(DEV)
	$(BIN)/python tests/size.py

types: $(DEV)
	$(BIN)/mypy --num-workers 2

# What cannot run here is read by two linters; neither asks the network.
SCHEMA := $(BIN)/check-jsonschema --builtin-schema
workflows: $(DEV)
	$(BIN)/zizmor --offline --quiet .github
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml

# Its tools come from the npm registry, in the versions that tests/js/package-lock.json names.
javascript:
	@if command -v npm >/dev/null; then \
		$(MAKE) --no-print-directory $(NODE_MODULES) && npm --prefix tests/js run --silent check; \
	elif [ "$$KBKIT_REQUIRE_BROWSER" = 1 ]; then \
		echo "KBKIT_REQUIRE_BROWSER=1, but npm is not there" >&2; exit 1; \
	else \
		echo "Skipped: JavaScript is neither linted nor tested without Node 18 or newer and npm"; \
	fi

$(NODE_MODULES): tests/js/package-lock.json
	npm --prefix tests/js ci --prefer-offline --no-audit --no-fund --loglevel=error
	touch $@

lowest:
	$(ONE_THREAD) PYTHON=$(PYTHON) .ci/releases lowest-direct

latest:
	$(ONE_THREAD) PYTHON=$(PYTHON) .ci/releases highest

core:
	PYTHON=$(PYTHON) .ci/core

dist: | $(BIN)/python
	rm -rf dist
	$(BIN)/python -m pip install --quiet --constraint constraints.txt build
	$(BIN)/python -m build --quiet

sbom:
	PYTHON=$(PYTHON) .ci/sbom

audit:
	PYTHON=$(PYTHON) .ci/sbom --audit

bench: $(DEV)
	$(BIN)/python benchmarks/_all.py

soak: $(DEV) demo
	$(BIN)/python -m pytest -q -m soak
	$(BIN)/python tests/mutants.py --floor 0.85
	KBKIT_HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -q tests/fuzz -o timeout=0
	set -e; for round in $$(seq $(ROUNDS)); do \
		echo "== round $$round of $(ROUNDS)"; \
		KBKIT_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/faults tests/files tests/entries/test_writers.py \
			tests/ingest/test_chunking.py \
			tests/browser/test_notebooks.py -m "not soak" -o timeout=1800; \
	done
	$(BIN)/python tests/lighthouse.py

publish: $(RUN)
	$(BIN)/python recipes/publish.py --docs --floor 0.4 recipes/quickstart.yaml

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
	rm -rf .venv build dist tests/js/node_modules .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"kbkit needs Python 3.11 or newer: make ... PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv

# The versions of constraints.txt. Files are copied: nltk reads no file that has hard links.
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --link-mode copy --compile-bytecode \
	--constraint $(LOCK) --build-constraint $(LOCK)
LOCK ?= constraints.txt

$(RUN): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) -e ".[site]" --group docs
	touch $(RUN)

$(DEV): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) -e ".[all]" --group dev
	touch $(RUN) $(DEV)

# The newest releases that pyproject.toml allows, for Python 3.11 and newer on every system.
lock: | $(BIN)/python
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev \
		--no-header --no-annotate --upgrade --output-file constraints.txt pyproject.toml
