# Two commands: `make demo` and `make test`. Everything is put into .venv.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WORKERS ?= 2

.PHONY: demo test check bench soak clean

demo: $(VENV)/installed
	$(BIN)/queryveil demo --force

test: $(VENV)/installed-test
	@tools/debian_packages.sh
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -r s

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
	$(BIN)/python -m benchmarks.redis_between
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.dp
	$(BIN)/python -m benchmarks.spark --users 50000,100000

soak: $(VENV)/installed-test
	QUERYVEIL_SOAK=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -r s tests/kernels tests/methods tests/verify tests/formats tests/engines

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "queryveil needs Python 3.11 or newer; install it, or say make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) install -c constraints.txt -e '.[test]'
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(PIP) install -c constraints.txt -e '.[bench]'
	@touch $@
