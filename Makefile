# What to type: `make train`, `make test`, `make bench`, `make check`. Each does the set-up it needs.
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(shell find kernels -type f)
CXX_FILES := $(shell find kernels tests -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')

.PHONY: setup train test test-slow bench compare lint check stub gpu-check gpu-resources format clean

setup: $(VENV)/.installed

$(VENV)/.installed: $(SOURCES)
	@command -v g++ >/dev/null || { echo "g++ is missing: install a C++20 compiler (Debian, Ubuntu: apt install g++)"; exit 1; }
	@test -x $(BIN)/python || python3 -m venv $(VENV) || { echo "python3 -m venv failed: install Python 3.11 or later with venv (Debian, Ubuntu: apt install python3-venv python3-dev)"; exit 1; }
	@echo "setting up $(VENV): downloads torch and others, compiles the kernels; this takes some minutes"
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

train: setup
	$(BIN)/python train/run.py $(ARGS)

# Files of tests run beside each other. ARGS="tests/test_cache.py -n 0 --pdb" for a closer look.
test: setup
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile $(ARGS)

test-slow: setup
	$(BIN)/python -m pytest -m slow $(ARGS)

# Speeds beside baselines, within 10 minutes. ARGS="--only gather sample", ARGS="--json FILE".
bench: setup
	$(BIN)/python tests/bench/bench.py $(ARGS)

# Our row formats beside compressors of bytes, some minutes. ARGS="--only cora", ARGS="--json FILE".
compare: setup
	@test -e $(VENV)/.compare || { $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[compare]' && touch $(VENV)/.compare; } || echo "not all packages could be installed: the lines of those that are missing say so"
	$(BIN)/python tests/bench/compare.py $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

# The extension's type stub is committed; run this after a change of the bindings.
stub: setup
	$(BIN)/python -m nanobind.stubgen -m gnn_ibp._kernels -o gnn_ibp/_kernels.pyi

# Needs a GPU, no network and no set-up: see tests/gpu/check.py --help. ARGS="--skip build tests" for example.
gpu-check:
	$(if $(wildcard $(BIN)/python),$(BIN)/python,python3) tests/gpu/check.py $(ARGS)

# What the CUDA kernels take of a multiprocessor is committed; run this where a change of them is wanted.
gpu-resources: setup
	PYTHONPATH=. $(BIN)/python tests/nvrtc/resource_table.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

clean:
	rm -rf $(VENV) build dist
