# maskmill: `make demo` builds a data set from the bundled sample dump, `make test` passes the tests.
# Both set up .venv first. Heavy parts have targets of their own.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv demo docs test test-fast test-heavy test-builds test-docs test-training test-torch test-readers test-defects test-exhaustive test-kernels-in-python test-kernels-bounds test-report test-releases test-kills test-airflow test-slow test-flink lint wheel pictures bench lock clean

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

# What has an environment of its own, cannot run beside others, or takes too long; and what has a target of its own.
ELSEWHERE := not docs and not training and not torch and not flink and not slow and not readers and not airflow \
  and not kills and not in_python and not bounds and not exhaustive
APART := $(ELSEWHERE) and not browser and not defects and not releases
LIGHT := $(APART) and not builds

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

test-builds: $(VENV)/dev ## whole commands in their variants
	$(PYTEST) --hypothesis-profile=part -m "$(APART) and builds"

# Three processes on two cores: servers, browsers and watches are waited for.
test-heavy: $(VENV)/dev ## test-builds, test-defects, test-releases and test-report in one run, which imports and builds less
	$(PYTEST) --numprocesses $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )) --hypothesis-profile=part -m "$(ELSEWHERE) and (builds or defects or releases or browser)"

# The site's generator has an environment of its own, which sees what the base install has: pages are made of the program.
DOCS := .venv-docs

$(DOCS)/ready: requirements-docs.lock $(VENV)/base
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/$(PIP_INSTALL) --requirement requirements-docs.lock
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > "$$($(DOCS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
	touch $@

docs: $(DOCS)/ready ## the pages as a site, in build/site/index.html; a warning is a failure
	rm -rf build/site
	$(DOCS)/bin/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going -c docs/site . build/site

test-docs: $(VENV)/dev docs ## the commands and programs of the pages in docs/, and the site in a real browser (Chromium)
	$(PYTEST) -m "docs and not exhaustive" tests/test_docs.py tests/test_docs_site.py

# Training has an environment of its own: TensorFlow, Keras and JAX are 2 GB.
TRAINING := .venv-training

$(TRAINING)/ready: requirements-training.lock setup.py
	test -x $(TRAINING)/bin/python || $(PYTHON) -m venv $(TRAINING)
	$(TRAINING)/bin/$(PIP_INSTALL) --requirement requirements-training.lock
	$(TRAINING)/bin/$(PIP_INSTALL) --editable .
	touch $@

TRAINS := training and not torch
TRAINED := tests/training tests/vocabularies tests/loading

# Most of its time is XLA's compiling, of which the optimizations are the larger part: only test-exhaustive has them.
test-training: $(TRAINING)/ready ## the tests of what needs TensorFlow, JAX, Keras or grain
	XLA_FLAGS=--xla_backend_optimization_level=0 \
	  $(TRAINING)/bin/python -m pytest -q --numprocesses auto --dist worksteal -m "$(TRAINS) and not exhaustive" $(TRAINED)

# PyTorch has one too: with the CUDA libraries that its wheel brings it is 5 GB.
TORCH := .venv-torch

$(TORCH)/ready: requirements-torch.lock setup.py
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/$(PIP_INSTALL) --requirement requirements-torch.lock
	$(TORCH)/bin/$(PIP_INSTALL) --editable .
	touch $@

test-torch: $(TRAINING)/ready $(TORCH)/ready ## what needs PyTorch or DALI: loaders, and exports for Hugging Face (7 GB)
	$(TORCH)/bin/python -m pytest -q -m torch tests/loading
	MASKMILL_TORCH_PYTHON=$(TORCH)/bin/python $(TRAINING)/bin/python -m pytest -q -m torch tests/training

# The libraries that read our formats: MosaicML's streaming wants PyTorch, too.
READERS := .venv-readers

$(READERS)/ready: requirements-readers.lock
	test -x $(READERS)/bin/python || $(PYTHON) -m venv $(READERS)
	$(READERS)/bin/$(PIP_INSTALL) --requirement requirements-readers.lock
	touch $@

test-readers: $(VENV)/dev $(READERS)/ready ## pandas, DuckDB, Polars, datasets, streaming read the same arrays (7 GB)
	MASKMILL_READERS_PYTHON=$(READERS)/bin/python $(BIN)/python -m pytest -q -m readers tests/records tests/vocabularies \
	  tests/loading

test-defects: $(VENV)/dev ## maskmill verify finds every damage of a list, and none in good data sets
	$(PYTEST) -m "defects and not exhaustive" tests/verification tests/kernels

test-exhaustive: $(VENV)/dev $(TRAINING)/ready docs ## the cases that the other targets leave out: every damage in every build, all properties in full (50 minutes)
	$(PYTEST) -m "exhaustive and not training and not flink"
	$(PYTEST) -m "$(ELSEWHERE) and hypothesis"
	$(BIN)/python -m pytest -q -m "flink and exhaustive"
	$(TRAINING)/bin/python -m pytest -q -m "$(TRAINS) and exhaustive" $(TRAINED)

# A process each: the tests of a target share what takes a minute to make.
test-kernels-in-python: $(VENV)/dev ## small cases of every step without the compiler, which checks bounds, beside the compiled kernels
	$(BIN)/python -m pytest -q -m "in_python or (bounds and not exhaustive)" tests/kernels
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/extraction/test_kernels_*.py \
	  tests/inputs/test_xml_kernels.py::test_a_page_that_is_cut_off_anywhere_needs_more \
	  "tests/reading/test_tfrecord_reader.py::test_an_index_that_does_not_fit_is_not_used[huge]"

test-kernels-bounds: $(VENV)/dev ## small cases with the compiler's checks of bounds
	$(BIN)/python -m pytest -q -m bounds tests/kernels

test-report: $(VENV)/dev ## the report in a real browser (needs Chromium or Chrome, or MASKMILL_BROWSER=its path)
	$(PYTEST) -m "browser and not exhaustive" tests/reporting

test-releases: $(VENV)/dev ## releases, mirrors and watches: whole builds, killed and begun again
	$(PYTEST) -m "releases and not kills and not exhaustive"

test-kills: $(VENV)/dev ## kill -9 at 20 moments of a watch, and a store that fails at every fifth request (15 minutes)
	$(PYTEST) -m kills tests/releases tests/deploy

# Airflow has an environment of its own too: its constraints name a version for everything it imports.
AIRFLOW := .venv-airflow

$(AIRFLOW)/ready: $(wildcard deploy/airflow/*.txt deploy/airflow/install*.sh deploy/airflow/pyproject.toml)
	PYTHON=$(PYTHON) deploy/airflow/install.sh $(AIRFLOW)
	touch $@

test-airflow: $(VENV)/dev $(TRAINING)/ready $(AIRFLOW)/ready ## a real Airflow from a new dump to a checkpoint
	MASKMILL_AIRFLOW_PYTHON=$(AIRFLOW)/bin/python MASKMILL_TRAINING_PYTHON=$(TRAINING)/bin/python \
	  $(BIN)/python -m pytest -q -m airflow tests/airflow

test-slow: $(VENV)/dev ## what takes minutes: the package as Dataflow's workers install it
	$(BIN)/python -m pytest -q -m slow

test-flink: $(VENV)/dev ## the whole build on a real Flink (needs Java 11 or 17, and Maven)
	$(BIN)/python -m pytest -q -m "flink and not exhaustive"

lint: $(VENV)/dev ## ruff, mypy, the order of imports, licences, and the linters of what deploy/ and .github/ hold
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
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
	  'hypothesis>=6.100' 'nvidia-dali-cuda130>=1.50 ; sys_platform == "linux"' | $(COMPILE) - --upgrade \
	  --output-file requirements-torch.lock
	printf 'torch>=2.6,<3\ntransformers>=4.50,<6\nmosaicml-streaming>=0.13\ndatasets>=3\nduckdb>=1\npandas>=2\npolars>=1\n' \
	  | $(RESOLVE) --upgrade - --output-file requirements-readers.lock

	printf 'furo>=2025.7\nmyst-parser>=4\nsphinx>=8,<10\n' | $(RESOLVE) - --constraint requirements-dev.lock \
	  --output-file requirements-docs.lock

clean: ## delete what make made
	rm -rf $(VENV) $(DOCS) $(TRAINING) $(TORCH) $(READERS) $(AIRFLOW) demo build dist *.egg-info
