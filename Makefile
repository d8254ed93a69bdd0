# `make demo` and `make test` work on a fresh machine with Python >= 3.11, make and a package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTABLE := $(VENV)/.testable
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal
unexport PYTHONDONTWRITEBYTECODE  # or each process that a test starts would compile every module again

.PHONY: help setup shell hooks demo live-demo test test-all test-ci test-brokers test-spark mutants mutants-sampled walk digests audits check fix cover docs wheel bench bench-all figures tables clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## create .venv with all development tools

$(TESTABLE): pyproject.toml constraints.txt  # what the default tests and the demo need
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "shoal needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing packages; this takes a few minutes ..."
	$(INSTALL) -e ".[tests]"
	@touch $@

$(READY): $(TESTABLE)
	@echo "installing development tools, among them Spark ..."
	$(INSTALL) -e ".[dev]"
	@touch $@

shell: $(READY)  ## open a shell that finds `shoal`; exit ends it
	@echo "shoal is on the path of this shell; 'exit' ends it. Try: shoal methods"
	@PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" $${SHELL:-/bin/sh} || true

hooks: $(READY)  ## run the checks before every commit
	$(BIN)/pre-commit install

demo: $(TESTABLE)  ## generate a day of web visits, anonymize it, audit it, draw it
	$(BIN)/shoal demo --out demo-out

live-demo: $(TESTABLE)  ## send visits to a NATS server, kill and restart a run that reads them, show that nothing is lost
	$(BIN)/python examples/live/run_demo.py

test: $(TESTABLE)  ## run the default tests
	$(BIN)/python -m tests.compile_once
	$(PYTEST) -m "not slow and not exhaustive and not brokers and not spark"

test-all: $(READY)  ## run all tests, including slow and exhaustive ones
	$(BIN)/python -m tests.compile_once
	SHOAL_TESTS=all $(PYTEST) -m "not brokers and not spark"

test-ci: $(READY)  ## run the default and the slow tests, and a part of the exhaustive ones, drawn by SHOAL_SEED
	$(BIN)/python -m tests.compile_once
	SHOAL_TESTS=ci $(PYTEST) -rs -m "not brokers and not spark"

test-brokers: $(TESTABLE)  ## start real brokers and kill runs that use them; what is not installed is left out
	$(BIN)/python -m tests.compile_once
	$(BIN)/python -m pytest -q -rs -n 2 --dist loadfile -m "brokers$(if $(filter all,$(SHOAL_TESTS)),, and not slow)" tests/brokers

test-spark: $(READY)  ## start Spark, compare with runs on one machine, kill executors and the driver
	$(BIN)/python -m tests.compile_once
	$(BIN)/python -m pytest -q -rs -n 2 --dist loadfile -m spark tests/spark

mutants: $(TESTABLE)  ## plant defects and see the default tests catch each of them
	$(BIN)/python -m tests.mutants

mutants-sampled: $(READY)  ## plant a sample of generated defects; no package may have a lower share killed than recorded; WORDS=...
	$(BIN)/python -m tests.mutants.reach
	$(BIN)/python -m tests.mutants.sampled $(WORDS)

walk: $(TESTABLE)  ## count the files, functions and calls that runs pass through; RUNS=... for some
	$(BIN)/python -m tests.tools.walk $(RUNS)

digests: $(TESTABLE)  ## compare all outputs for fixed inputs with the recorded ones; WORDS=... for some
	$(BIN)/python -m tests.golden.digests $(WORDS)

audits: $(TESTABLE)  ## run the auditor on captured cases, list what it answers differently: CASES=folder
	$(BIN)/python -m tests.tools.compare_audits $(CASES)

check: $(READY)  ## lint, types, import rules; print the size of every package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.tools.size

fix: $(READY)  ## auto-fix lint errors and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

cover: $(READY)  ## run without JIT and measure the coverage of kernels, methods, auditor and crypto
	rm -f .coverage .coverage.*
	NUMBA_DISABLE_JIT=1 COVERAGE_PROCESS_START=pyproject.toml $(PYTEST) \
		-m "not compiled and not slow and not exhaustive and not spark" \
		$(addprefix tests/,kernels methods auditor crypto laws testing golden hierarchies models reproduce \
		pipeline/sets/test_local.py e2e/test_attestation.py e2e/test_audit_table.py decode/test_zeek.py)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --include='src/shoal/kernels/*,src/shoal/methods/*,src/shoal/auditor/*,src/shoal/crypto/*' \
		--show-missing --skip-covered --fail-under=97

docs: $(READY)  ## build the docs site in site/; a broken link fails the build
	$(BIN)/zensical build --strict --clean

wheel: $(READY)  ## build wheel and sdist in dist/
	$(BIN)/python -m build --no-isolation --outdir dist .

bench: $(READY)  ## measure the figures of README and docs and fill them in; DATA=folder for real data
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

bench-all: $(READY)  ## also run the long benchmarks: about an hour and 4.3 GB of memory
	$(BIN)/python -m benchmarks --all $(if $(DATA),--data $(DATA))

figures: $(READY)  ## fill README and docs from benchmarks/results; list figures older than the code
	$(BIN)/python -m benchmarks.fill

tables: $(READY)  ## fill the tables of policy keys and of audit codes from the code
	$(BIN)/python -m tests.docs.settings_tables
	$(BIN)/python -m tests.docs.check_tables

clean:  ## remove everything that make created
	rm -rf $(VENV) demo-out dist site .cache .coverage .coverage.* .hypothesis
