# maskmill: `make demo` builds a data set from the bundled sample dump, `make test` passes the tests.
# Both set up .venv first. Heavy parts have targets of their own.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv demo test test-all lint bench clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(VENV)/base: requirements.lock setup.py
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "maskmill needs Python 3.11, 3.12 or 3.13; name one with make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/dev: $(VENV)/base requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements-dev.lock
	touch $@

venv: $(VENV)/dev ## set up .venv for development

demo: $(VENV)/base ## build a data set from the bundled sample dump
	$(BIN)/maskmill build examples/demo.yaml
	@echo; echo "The data set is in demo/:"; ls -l demo/text demo/examples demo/eval | grep -v '^total'

test: $(VENV)/dev ## the tests of the data path
	$(BIN)/python -m pytest -q

lint: $(VENV)/dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/dev ## the measurements that need nothing but this checkout
	$(BIN)/python benchmarks/build.py

clean: ## delete what make made
	rm -rf $(VENV) demo build dist *.egg-info
