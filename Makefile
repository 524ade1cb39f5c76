# `make demo` and `make test` do all their own set-up: they need Python >= 3.11, make and git only.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint bench soak quality compat clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(STAMP)
	@$(BIN)/python -m pipeline.demo

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m tests.bench

soak: $(STAMP)
	$(BIN)/python -m pytest -m soak

quality: $(STAMP)
	$(BIN)/python -m tests.quality

# The real client's newest version: does it still write what we know?
compat: $(STAMP)
	$(BIN)/python -m tests.e2e.compat

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
