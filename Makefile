# Every target makes its own environment; only Python, pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow lint bench docs clean

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e ".[dev]"
	touch $@

demo: $(VENV)/.core
	$(BIN)/rumormill reproduce fig1a --quick

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

bench: $(VENV)/.core
	$(BIN)/python scripts/bench.py
