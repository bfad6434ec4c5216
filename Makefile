# make demo   compile and run ResNet-50, check it, print a short table
# make test   ruff, mypy, import-linter, the generated tables, lit, pytest
# make torch  installs PyTorch, JAX, Flax and Keras beside it, and runs the tests that need one; with `make test` everything that CI runs
# make lint   ruff, mypy, import-linter, the generated tables
# make zoo    exports some 200 architectures in an environment of its own and compares each with ONNX Runtime (test/zoo); OUT=DIR, hours
# make docs   the site, in build/site; docs-serve serves it while pages are written
# make clean  remove the virtual environment and what the tools leave behind
#
# From a bare machine with Python (3.10 to 3.13) and make; PYTHON=python3.12 picks another interpreter, JOBS=8 more test processes.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The test processes share the cores: OpenMP threads that wait give up their core at once, and numpy has one thread, as its others would spin.
PYTEST = KMP_BLOCKTIME=0 OPENBLAS_NUM_THREADS=1 $(1)/python -m pytest -n $(JOBS) --dist worksteal
# The newest pip also shows the warnings of build backends, which are for authors of packages.
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip --quiet --disable-pip-version-check
# With tables that come from the code.
PAGES := $(addprefix docs/,operators.md fusion.md targets.md how-it-works.md schedules.md) pipelines/tir/strategy/README.md

# Many tests start processes: without bytecode each of them would compile the sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types rules lit pytest torch zoo docs docs-serve clean

demo: $(INSTALLED)
	$(BIN)/python -m relayc.tools.demo

# Types, which take as long as the other rules, beside them.
test: $(INSTALLED)
	$(MAKE) --no-print-directory --jobs=2 --output-sync types rules lit
	$(MAKE) --no-print-directory pytest

lint: $(INSTALLED)
	$(MAKE) --no-print-directory --jobs=2 --output-sync types rules

types: $(INSTALLED)
	$(BIN)/mypy

rules: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m relayc.tools.generated --check $(PAGES)

lit: $(INSTALLED)
	$(BIN)/lit -sv -j $(JOBS) test/lit

pytest: $(INSTALLED)
	$(call PYTEST,$(BIN))

# Where the tests are that need a framework.
WITH_FRAMEWORK := frontend/test_pytorch* frontend/test_jax* frontend/test_flax frontend/test_keras bench/test_bench_pytorch \
  export/test_export runtime/test_torch_tensors runtime/test_threads test_pages
# The release that the extra `torch` allows; the CPU wheel where the package index has it under this version. Flax needs the Python of JAX.
FRAMEWORKS := torch==2.13.0 expecttest --editable '.[jax,keras]' 'flax; python_version >= "3.11"'
# An environment of their own, which has all of the other one: where PyTorch is installed, every process that imports tvm-ffi imports it.
BESIDE := $(VENV)/frameworks
torch: $(BESIDE)/.installed
	$(call PYTEST,$(BESIDE)/bin) -k "torch or jax or flax or keras" $(wildcard $(WITH_FRAMEWORK:%=test/python/%.py))

$(BESIDE)/.installed: $(INSTALLED)
	$(BIN)/python -m venv --without-pip $(BESIDE)
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' >$(BESIDE)/other.pth
	mv $(BESIDE)/other.pth $$($(BESIDE)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	$(PIP) --python $(BESIDE)/bin/python install --no-compile $(FRAMEWORKS)
	touch $@

docs docs-serve: export NO_MKDOCS_2_WARNING = 1
docs: $(INSTALLED)
	$(PIP) install --no-compile --editable '.[docs]'
	$(BIN)/mkdocs build --strict

docs-serve: docs
	$(BIN)/mkdocs serve --livereload

OUT ?= build/zoo
zoo: $(INSTALLED)
	$(BIN)/python test/zoo/run.py --out $(OUT) --times

# Modules are compiled when they are first imported: all of them take as long as the rest of the installation.
# The pip that comes with Python 3.11 takes twice as long as the newest one.
# Editable: the environment is made again only when the project's metadata changes. The link lets mypy see the checkout as the package.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --no-compile --upgrade pip
	$(PIP) install --no-compile --editable '.[test]'
	mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/relayc
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
