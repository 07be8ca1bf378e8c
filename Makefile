# maskmill: `make demo` builds a data set from the bundled sample dump, `make test` passes the tests.
# Both set up .venv first. Heavy parts have targets of their own.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv demo docs test test-fast test-heavy test-training test-torch test-flink test-gcs test-airflow test-exhaustive lint wheel pictures bench lock clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

# Python keeps the bytecode of what it imports, whatever the environment says: pip leaves that to it, for the little
# that is imported of all that is installed. A lock names all that it needs: with an extra, pip 23 looks for the newest
# release of a package that the lock pins, and refuses that one.
export PYTHONDONTWRITEBYTECODE :=
PIP_INSTALL := pip install --quiet --disable-pip-version-check --no-compile --no-deps

# Compiles kernels, all or those of a build, while pip waits for packages.
compiling = $(BIN)/maskmill warm-up $(1) & compiling=$$!; $(BIN)/$(PIP_INSTALL) --requirement $(2) && wait $$compiling

# What compiles kernels is installed first: those of the demo are compiled while pip installs the rest.
COMPILER := llvmlite|numba|numpy|protobuf|psutil|pyyaml|urllib3

$(VENV)/base: requirements.lock setup.py
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "maskmill needs Python 3.11, 3.12 or 3.13; name one with make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	sed -nE '/^($(COMPILER))==/,/[^\\]$$/p' requirements.lock > $(VENV)/compiler.txt
	$(BIN)/$(PIP_INSTALL) --requirement $(VENV)/compiler.txt
	$(BIN)/$(PIP_INSTALL) --editable .
	@$(call compiling,examples/demo.yaml,requirements.lock)
	touch $@

$(VENV)/test: $(VENV)/base requirements-test.lock
	@$(call compiling,,requirements-test.lock)
	touch $@

$(VENV)/dev: $(VENV)/test requirements-dev.lock
	$(BIN)/$(PIP_INSTALL) --requirement requirements-dev.lock
	touch $@

venv: $(VENV)/dev ## set up .venv for development

demo: $(VENV)/base ## build a data set from the bundled sample dump
	$(BIN)/maskmill build examples/demo.yaml
	@echo; echo "The data set is in demo/:"; ls -l demo/text demo/examples demo/eval | grep -v '^total'

# What each target leaves to others: what has an environment or a program of its own, the rest of what has many cases,
# and what runs without the compiler.
HERE := not elsewhere and not exhaustive and not in_python
LIGHT := $(HERE) and not builds

# A process for each core. It goes on with the tests of its files, for they share what their fixtures make, and takes
# over half of what another has left once it has none.
PYTEST := $(BIN)/python -m pytest -q --numprocesses auto --dist worksteal

test: announced $(VENV)/test ## a layer of tests of each kind
	$(PYTEST) --hypothesis-profile=fast -m "$(LIGHT)"

.PHONY: announced
announced:
	@echo "make test takes about five minutes on two slow cores, with all that it sets up; a second run takes half of it."

test-fast: $(VENV)/test ## a first signal, in under a minute
	$(PYTEST) --hypothesis-profile=fast -m "$(LIGHT) and not long"

# Three processes on two cores: servers, browsers and watches are waited for. Kernels run without the compiler in processes
# of their own: places outside of arrays are errors there.
test-heavy: $(VENV)/dev docs ## whole commands, damage, releases, the pages, the report in a browser (Chromium), kernels in Python
	$(PYTEST) --numprocesses $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )) --hypothesis-profile=part -m "$(HERE) and builds"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/extraction/test_kernels_*.py \
	  tests/inputs/test_xml_kernels.py::test_a_page_that_is_cut_off_anywhere_needs_more \
	  "tests/reading/test_tfrecord_reader.py::test_an_index_that_does_not_fit_is_not_used[huge]"

docs: $(VENV)/dev ## the pages as a site, in build/site/index.html; a warning is a failure
	rm -rf build/site
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going -c docs/site . build/site

# Training has an environment of its own: TensorFlow, Keras and JAX are 2 GB.
TRAINING := .venv-training

$(TRAINING)/ready: requirements-training.lock setup.py
	test -x $(TRAINING)/bin/python || $(PYTHON) -m venv $(TRAINING)
	$(TRAINING)/bin/$(PIP_INSTALL) --requirement requirements-training.lock
	$(TRAINING)/bin/$(PIP_INSTALL) --editable .
	touch $@

TRAINED := tests/training tests/vocabularies tests/loading

# Most of its time is XLA's compiling, of which the optimizations are the larger part: only test-exhaustive has them.
test-training: $(TRAINING)/ready ## the tests of what needs TensorFlow, JAX, Keras or grain
	XLA_FLAGS=--xla_backend_optimization_level=0 \
	  $(TRAINING)/bin/python -m pytest -q --numprocesses auto --dist worksteal -m "elsewhere and not exhaustive" $(TRAINED)

# PyTorch has one too: with the CUDA libraries that its wheel brings it is 5 GB.
TORCH := .venv-torch

$(TORCH)/ready: requirements-torch.lock setup.py
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/$(PIP_INSTALL) --requirement requirements-torch.lock
	$(TORCH)/bin/$(PIP_INSTALL) --editable .
	touch $@

# The libraries that read our formats: of them MosaicML's streaming wants PyTorch, too, and older libraries beside it.
READERS := .venv-readers

$(READERS)/ready: requirements-readers.lock
	test -x $(READERS)/bin/python || $(PYTHON) -m venv $(READERS)
	$(READERS)/bin/$(PIP_INSTALL) --requirement requirements-readers.lock
	touch $@

test-torch: $(VENV)/dev $(TRAINING)/ready $(TORCH)/ready $(READERS)/ready ## PyTorch, Hugging Face, pandas, DuckDB, Polars, streaming (14 GB)
	$(TORCH)/bin/python -m pytest -q -m elsewhere tests/loading
	MASKMILL_TORCH_PYTHON=$(TORCH)/bin/python $(TRAINING)/bin/python -m pytest -q tests/training/test_torch.py
	MASKMILL_READERS_PYTHON=$(READERS)/bin/python $(BIN)/python -m pytest -q tests/records/test_readers.py \
	  tests/vocabularies/test_transformers.py

test-exhaustive: $(VENV)/dev $(TRAINING)/ready docs ## all cases of what other targets run in part, all properties in full, kills (more than an hour)
	$(PYTEST) -m "exhaustive and not elsewhere"
	$(PYTEST) -m "$(HERE) and hypothesis"
	$(BIN)/python -m pytest -q -m "elsewhere and exhaustive" tests/deploy/test_flink.py
	$(TRAINING)/bin/python -m pytest -q -m "elsewhere and exhaustive" $(TRAINED)

# Airflow has an environment of its own too: its constraints name a version for everything it imports.
AIRFLOW := .venv-airflow

$(AIRFLOW)/ready: $(wildcard deploy/airflow/*.txt)
	$(PYTHON) -m venv $(AIRFLOW)
	$(AIRFLOW)/bin/pip install -q -r deploy/airflow/requirements.txt -c deploy/airflow/constraints.txt
	touch $@

test-airflow: $(VENV)/dev $(TRAINING)/ready $(AIRFLOW)/ready ## a real Airflow from a new dump to a checkpoint
	MASKMILL_AIRFLOW_PYTHON=$(AIRFLOW)/bin/python MASKMILL_TRAINING_PYTHON=$(TRAINING)/bin/python \
	  $(BIN)/python -m pytest -q -m elsewhere tests/airflow

test-flink: $(VENV)/dev ## the whole build on a real Flink (needs Java 11 or 17, and Maven)
	$(BIN)/python -m pytest -q -m "elsewhere and not exhaustive" tests/deploy/test_flink.py

# Programs that tests start, which no package index has.
MASKMILL_TOOLS ?= $(CURDIR)/.tools

$(MASKMILL_TOOLS)/fake-gcs-server:
	GOBIN=$(MASKMILL_TOOLS) go install github.com/fsouza/fake-gcs-server@v1.56.1

test-gcs: $(VENV)/dev $(MASKMILL_TOOLS)/fake-gcs-server ## gs:// on a server that nobody here wrote (needs Go, which builds it in minutes)
	MASKMILL_TOOLS=$(MASKMILL_TOOLS) $(BIN)/python -m pytest -q -m elsewhere tests/deploy/test_stores.py

lint: $(VENV)/dev ## ruff, mypy, the order of imports, licences, and the linters of what deploy/ and .github/ hold
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python .ci/check_words.py
	$(BIN)/python .ci/check_licences.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pre-commit run --all-files --color=never

wheel: $(VENV)/base ## a wheel in dist/, with the kernels' machine code for this kind of machine
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

pictures: $(VENV)/dev ## draw docs/pictures anew: a terminal, the report (needs Chromium), charts
	$(BIN)/python .ci/draw_pictures.py terminal report charts

bench: $(VENV)/dev ## the measurements that need nothing but this checkout
	$(BIN)/python -m benchmarks.build

UV ?= uv
RESOLVE := $(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --generate-hashes
COMPILE := $(RESOLVE) setup.py
BASED := --constraint requirements.lock --constraint requirements-gcp.lock

lock: ## write the lock files anew, with the checksums of all packages (needs uv)
	$(COMPILE) --upgrade --output-file requirements.lock
	$(COMPILE) --extra gcp --constraint requirements.lock --output-file requirements-gcp.lock
	$(COMPILE) --extra test $(BASED) --output-file requirements-test.lock
	$(COMPILE) --extra dev $(BASED) --constraint requirements-test.lock --output-file requirements-dev.lock
	printf '%s\n' 'grain>=0.2.10' 'nbclient>=0.10' 'ipykernel>=6' | $(COMPILE) - --extra dev --extra tensorflow --constraint requirements-gcp.lock \
	  --output-file requirements-training.lock
	$(COMPILE) --extra jax --constraint requirements-training.lock --output-file requirements-jax.lock
	printf '%s\n' 'torch>=2.6,<3' 'transformers>=4.50,<6' 'torchdata>=0.11' 'pytest>=8' 'pytest-xdist>=3' \
	  'hypothesis>=6.100' | $(COMPILE) - --upgrade --output-file requirements-torch.lock
	printf 'torch>=2.6,<3\ntransformers>=4.50,<6\nmosaicml-streaming>=0.13\ndatasets>=3\nduckdb>=1\npandas>=2\npolars>=1\n' \
	  | $(RESOLVE) --upgrade - --output-file requirements-readers.lock

clean: ## delete what make made
	rm -rf $(VENV) $(TRAINING) $(TORCH) $(READERS) $(AIRFLOW) demo build dist *.egg-info
