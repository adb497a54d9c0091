# Three commands: `make demo`, `make quick` (the fast tests) and `make test` (all of them). Everything is put into .venv.
# In a checkout that cannot be written: make demo VENV=/some/place/venv DEMO=/some/place/demo
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
DEMO := queryveil-demo
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One worker more than cores: many tests wait for a server, a browser or a process of their own.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
# Long files come first, and Spark in one worker (tests/conftest.py).
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -r s --basetemp $(VENV)/tmp-$@
# Tests start many processes: none of them compiles the modules again that another has compiled.
unexport PYTHONDONTWRITEBYTECODE
# Nothing is written outside of the checkout, downloads of pip among it.
export PIP_CACHE_DIR ?= $(abspath $(VENV))/pip-cache
# Pip asks rustc for its version, and rustup, if there is one, begins a folder in a home that has none.
ifeq ($(wildcard $(HOME)/.rustup),)
export RUSTUP_HOME ?= $(abspath $(VENV))/rustup
endif

.PHONY: demo quick test check bench soak clean

demo: $(VENV)/installed
	$(BIN)/queryveil demo --force -o $(DEMO)

# Fast tests wait for nobody; properties are tried on few examples.
quick: WORKERS = $(shell getconf _NPROCESSORS_ONLN)
quick: $(VENV)/installed-test
	QUERYVEIL_QUICK=1 $(PYTEST) -m 'not slow' --ignore tests/papers --ignore tests/spark tests

test: $(VENV)/compiled
	@tools/debian_packages.sh
	$(PYTEST)

check: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.km
	$(BIN)/python -m benchmarks.clump
	$(BIN)/python -m benchmarks.kdelta
	$(BIN)/python -m benchmarks.plink
	$(BIN)/python -m benchmarks.identifiers
	$(BIN)/python -m benchmarks.classify
	$(BIN)/python -m benchmarks.swap
	$(BIN)/python -m benchmarks.stream
	$(BIN)/python -m benchmarks.stream_memory --events 5000000
	$(BIN)/python -m benchmarks.stores
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.hostile
	$(BIN)/python -m benchmarks.redis_between
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.exposure --users 4000
	$(BIN)/python -m benchmarks.dp
	$(BIN)/python -m benchmarks.spark --users 50000,100000

soak: $(VENV)/installed-test
	QUERYVEIL_SOAK=1 $(PYTEST) tests/text tests/methods tests/checks tests/formats tests/release tests/service tests/spark \
	  tests/attacks tests/pairing tests/utility tests/hostile
	$(BIN)/python -m tests.fuzzing --minutes 30

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .test-home

$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "queryveil needs Python 3.11 or newer; install it, or say make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Nothing is installed whose hash is not listed; `python -m tools.lock` writes the lists from constraints.txt. What builds
# a package is among them, so pip fetches nothing else on the way.
HASHED = --require-hashes --no-build-isolation -r

$(VENV)/installed: $(VENV)/made pyproject.toml requirements/run.txt
	$(PIP) install $(HASHED) requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed requirements/test.txt
	$(PIP) install $(HASHED) requirements/test.txt
	@touch $@

# Most kernels, once: servers and executors of the tests would compile the same ones side by side.
$(VENV)/compiled: $(VENV)/installed-test $(shell find src -name '*.py')
	$(BIN)/python -m tests.support.kernels
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed requirements/bench.txt
	$(PIP) install $(HASHED) requirements/bench.txt
	@touch $@
