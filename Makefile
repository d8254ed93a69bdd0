# Two commands do everything on a fresh machine: `make demo` and `make test`. They need Python >= 3.11 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test check fix cover bench bench-all figures clean

help:  ## show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with everything in it

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "shoal needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing packages, a few minutes …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(READY)

demo: $(READY)  ## make a day of visits, anonymize it, audit it, draw it
	$(BIN)/shoal demo --out demo-out

test: $(READY)  ## run all tests
	$(BIN)/python -m tests.compile_once
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

check: $(READY)  ## lint, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(READY)  ## mend what can be mended by machine
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

cover: $(READY)  ## the run without JIT: coverage of the kernels and everything that decides
	rm -f .coverage .coverage.*
	NUMBA_DISABLE_JIT=1 COVERAGE_PROCESS_START=pyproject.toml $(BIN)/python -m coverage run -m pytest -q -m "not compiled" \
		tests --ignore=tests/e2e --ignore=tests/faults --ignore=tests/sanitize --ignore=tests/benchmarks
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --include='src/shoal/kernels/*,src/shoal/methods/*,src/shoal/auditor/*,src/shoal/crypto/*' \
		--show-missing --skip-covered --fail-under=97

bench: $(READY)  ## measure the figures of README and docs and fill them in; DATA=folder for real data
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

bench-all: $(READY)  ## the same with those that take minutes each: about an hour, and 4.3 GB of memory
	$(BIN)/python -m benchmarks --all $(if $(DATA),--data $(DATA))

figures: $(READY)  ## fill README and docs from benchmarks/results; say which figures are older than the code
	$(BIN)/python -m benchmarks.fill

clean:  ## remove what was made
	rm -rf $(VENV) demo-out .coverage .coverage.* .hypothesis
