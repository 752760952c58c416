# The first use of a target installs what it needs into .venv.
#   make demo     build the quickstart knowledge base and its site, offline
#   make test     venv, lint, tests and browser
#   make venv     install kbkit and the development tools in the versions of constraints.txt
#   make lint     linters, types, layers, prose, size, and unit tests of the JavaScript
#   make size     lines of code and docstrings by package; fails above the budget
#   make tests    tests without a browser
#   make browser  tests in Chromium
#   make slow     tests that are too slow for `make test`
#   make postgres tests of stores, ingest and retrieval with catalogs on a PostgreSQL server
#   make lock     update constraints.txt to the newest releases
#   make latest   test with the newest releases of all dependencies, in a separate venv
#   make lowest   test with the oldest releases that pyproject.toml allows, in a separate venv
#   make core     test the base install without extras, in a separate venv
#   make dist     build the wheel and the source distribution in dist/
#   make sbom     write a bill of materials (CycloneDX) of kbkit with all extras to build/sbom
#   make audit    make sbom, and check it for known vulnerabilities; needs the network
#   make coverage run all tests with coverage; takes twice as long
#   make bench    measure speed and quality into build/bench; takes an hour or more on two cores
#   make soak     long tests, mutants, fault and property tests ROUNDS times, Lighthouse on the demo's site
#   make publish  rebuild the site of the quickstart recipe as CI does, offline
#   make site     build the guides and the exported knowledge bases of WORKSPACE as one site
#   make notebooks  run the notebooks, so that the site shows their output
#   make lab      open the notebooks in JupyterLab
#   make clean    delete build products and .venv

PYTHON ?= python3
WORKSPACE ?= kb
ROUNDS ?= 10

# Tests start hundreds of processes, which would compile their imports again and again.
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

# Runs all parts, even if one fails, and prints the time of each.
GATE = $(PYTHON) tests/gate.py
test:
	$(GATE) venv lint tests browser

venv: $(DEV)

# Two processes with one BLAS thread each; more threads would wait for each other. The tests of a file run
# in one process, in order, because they share fixtures.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
WORKERS ?= 2
QUICK := not slow and not soak
CACHE ?= .pytest_cache
PYTEST = $(BIN)/python -m pytest -o cache_dir=$(CACHE) $(AGAIN) -n $(WORKERS) --dist loadfile --durations 40
tests: $(DEV)
	$(ONE_THREAD) $(PYTEST) -m "not browser and $(QUICK)"

# Collects only files with browser tests.
IN_A_BROWSER := grep -rl --include='test_*.py' 'mark\.browser' tests
browser: $(DEV)
	$(PYTEST) -m "browser and $(QUICK)" $$($(IN_A_BROWSER))

# Two runs, because a browser's driver has an event loop in its process.
slow: $(DEV)
	$(PYTEST) -m "slow and not browser and not soak"
	$(PYTEST) -m "slow and browser and not soak" $$($(IN_A_BROWSER))

# Tests that use a catalog, except those marked `local`, with the PostgreSQL of Debian or of a wheel.
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

# Two offline linters check the workflows, which cannot run here.
SCHEMA := $(BIN)/check-jsonschema --builtin-schema
workflows: $(DEV)
	$(BIN)/zizmor --offline --quiet .github
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml

# The tools come from the npm registry, in the versions of tests/js/package-lock.json.
javascript:
	@if command -v npm >/dev/null; then \
		$(MAKE) --no-print-directory $(NODE_MODULES) && npm --prefix tests/js run --silent check; \
	elif [ "$$KBKIT_REQUIRE_BROWSER" = 1 ]; then \
		echo "KBKIT_REQUIRE_BROWSER=1, but npm is missing" >&2; exit 1; \
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
	KBKIT_HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -q -o timeout=0 tests/fuzz \
		tests/ingest/test_chunking.py tests/retrieval/test_bad_input.py
	set -e; for round in $$(seq $(ROUNDS)); do \
		echo "== round $$round of $(ROUNDS)"; \
		KBKIT_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/faults tests/files tests/entries/test_writers.py \
			tests/ingest/test_chunking.py \
			tests/browser/test_notebooks.py -m "not soak" -o timeout=1800; \
	done
	$(BIN)/python tests/lighthouse.py

publish: $(RUN)
	$(BIN)/python recipes/publish.py --docs --floor 0.4 recipes/quickstart.yaml

# Copies the pages of knowledge bases into the guides, so that one search covers both.
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

# Copies files, because nltk refuses files with hard links.
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
