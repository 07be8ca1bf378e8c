# maskmill: `make demo` builds a data set from the bundled sample dump, `make test` passes the tests.
# Both set up .venv first. Heavy parts have targets of their own.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv demo test test-fast test-docs test-training test-torch test-readers test-defects test-report test-releases test-kills test-airflow test-slow test-flink lint bench lock clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(VENV)/base: requirements.lock setup.py
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "maskmill needs Python 3.11, 3.12 or 3.13; name one with make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@echo "Compiling the kernels, once: about a minute on two cores."
	@$(BIN)/python -m transforms.kernels
	touch $@

$(VENV)/dev: $(VENV)/base requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements-dev.lock
	touch $@

venv: $(VENV)/dev ## set up .venv for development

demo: $(VENV)/base ## build a data set from the bundled sample dump
	$(BIN)/maskmill build examples/demo.yaml
	@echo; echo "The data set is in demo/:"; ls -l demo/text demo/examples demo/eval | grep -v '^total'

LIGHT := not docs and not training and not torch and not flink and not slow and not readers and not defects and not browser \
  and not releases and not airflow

# A process for each core; the tests of a file stay in one (tests/conftest.py), for they share what its fixtures make.
PYTEST := $(BIN)/python -m pytest -q --numprocesses auto --dist loadgroup

test: $(VENV)/dev ## the tests of the data path
	$(PYTEST) -m "$(LIGHT)"

test-fast: $(VENV)/dev ## a first signal, in under a minute
	$(PYTEST) -m "$(LIGHT) and not long"

test-docs: $(VENV)/dev ## the commands and programs of the pages in docs/
	$(PYTEST) -m docs --dist load tests/test_docs.py

# Training has an environment of its own: TensorFlow, Keras and JAX are 2 GB.
TRAINING := .venv-training

$(TRAINING)/ready: requirements-training.lock setup.py
	test -x $(TRAINING)/bin/python || $(PYTHON) -m venv $(TRAINING)
	$(TRAINING)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-training.lock
	$(TRAINING)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

test-training: $(TRAINING)/ready ## the tests of what needs TensorFlow, JAX, Keras or grain
	$(TRAINING)/bin/python -m pytest -q -m "training and not torch" tests/training tests/vocabularies tests/loading

# PyTorch has one too: with the CUDA libraries that its wheel brings it is 5 GB.
TORCH := .venv-torch

$(TORCH)/ready: requirements-torch.lock setup.py
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-torch.lock
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

test-torch: $(TRAINING)/ready $(TORCH)/ready ## what needs PyTorch or DALI: loaders, and exports for Hugging Face (7 GB)
	$(TORCH)/bin/python -m pytest -q -m torch tests/loading
	MASKMILL_TORCH_PYTHON=$(TORCH)/bin/python $(TRAINING)/bin/python -m pytest -q -m torch tests/training

# The libraries that read our formats: MosaicML's streaming wants PyTorch, too.
READERS := .venv-readers

$(READERS)/ready: requirements-readers.lock
	test -x $(READERS)/bin/python || $(PYTHON) -m venv $(READERS)
	$(READERS)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-readers.lock
	touch $@

test-readers: $(VENV)/dev $(READERS)/ready ## pandas, DuckDB, Polars, datasets, streaming read the same arrays (7 GB)
	MASKMILL_READERS_PYTHON=$(READERS)/bin/python $(BIN)/python -m pytest -q -m readers tests/records tests/vocabularies \
	  tests/loading

test-defects: $(VENV)/dev ## maskmill verify finds every damage of a list, and none in good data sets
	$(PYTEST) -m defects tests/verification tests/kernels

test-report: $(VENV)/dev ## the report in a real browser (needs Chromium or Chrome, or MASKMILL_BROWSER=its path)
	$(BIN)/python -m pytest -q -m browser tests/reporting

test-releases: $(VENV)/dev ## releases, mirrors and watches: whole builds, killed and begun again
	$(PYTEST) -m "releases and not kills"

test-kills: $(VENV)/dev ## kill -9 at 20 moments of a watch, on a disk and on the storage emulator (10 minutes)
	$(PYTEST) -m kills tests/releases

# Airflow has an environment of its own too: its constraints name a version for everything it imports.
AIRFLOW := .venv-airflow

$(AIRFLOW)/ready: $(wildcard deploy/airflow/*.txt deploy/airflow/install*.sh deploy/airflow/pyproject.toml)
	PYTHON=$(PYTHON) deploy/airflow/install.sh $(AIRFLOW) --dataflow
	touch $@

test-airflow: $(VENV)/dev $(TRAINING)/ready $(AIRFLOW)/ready ## a real Airflow from a new dump to a checkpoint
	MASKMILL_AIRFLOW_PYTHON=$(AIRFLOW)/bin/python MASKMILL_TRAINING_PYTHON=$(TRAINING)/bin/python \
	  $(BIN)/python -m pytest -q -m airflow tests/airflow

test-slow: $(VENV)/dev ## what takes minutes: the package as Dataflow's workers install it
	$(BIN)/python -m pytest -q -m slow

test-flink: $(VENV)/dev ## the whole build on a real Flink (needs Java 11 or 17, and Maven)
	$(BIN)/python -m pytest -q -m flink

lint: $(VENV)/dev ## ruff, mypy, the order of imports, and the linters of what deploy/ holds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python .ci/check_deploy.py

bench: $(VENV)/dev ## the measurements that need nothing but this checkout
	$(BIN)/python -m benchmarks.build

UV ?= uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate setup.py

lock: ## write the lock files anew (needs uv)
	$(COMPILE) --upgrade --output-file requirements.lock
	$(COMPILE) --extra gcp --extra events --constraint requirements.lock --output-file requirements-gcp.lock
	$(COMPILE) --extra dev --constraint requirements-gcp.lock --output-file requirements-dev.lock
	printf 'grain>=0.2.10\n' | $(COMPILE) - --extra dev --extra tensorflow --constraint requirements-gcp.lock \
	  --output-file requirements-training.lock
	printf '%s\n' 'torch>=2.6,<3' 'transformers>=4.50,<6' 'torchdata>=0.11' 'pytest>=8' 'pytest-xdist>=3' \
	  'hypothesis>=6.100' 'nvidia-dali-cuda130>=1.50 ; sys_platform == "linux"' | $(COMPILE) - --upgrade \
	  --output-file requirements-torch.lock
	printf 'torch>=2.6,<3\ntransformers>=4.50,<6\nmosaicml-streaming>=0.13\ndatasets>=3\nduckdb>=1\npandas>=2\npolars>=1\n' \
	  | $(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --upgrade - \
	  --output-file requirements-readers.lock

clean: ## delete what make made
	rm -rf $(VENV) $(TRAINING) $(TORCH) $(READERS) $(AIRFLOW) demo build dist *.egg-info
