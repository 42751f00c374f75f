# `make train` and `make test` need nothing but Python 3.11 or newer: they set everything up themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help setup train results dashboard test test-all lint format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(INSTALLED)  ## Make .venv with everything that the project needs, pinned by constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if (3, 11) <= v[:2] <= (3, 13) else f"Python 3.11 to 3.13 is needed, and $(PYTHON) is {v[0]}.{v[1]}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

train: setup  ## The main job: train, validate and test the sentiment classifier
	$(BIN)/python src/train.py task=sentiment model=small

results: setup  ## RESULTS.md, measured anew or gone on with: hours
	$(BIN)/python benchmarks/results.py

dashboard: setup  ## The W&B workspace as logs/dashboard.json; src/dashboard.py --push puts it on W&B
	$(BIN)/python src/dashboard.py

test: setup  ## The tests, without those marked slow
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile

test-all: setup  ## All tests, minutes more
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile -m 'slow or not slow'

lint: setup  ## Style, types and the direction of the imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-logo

format: setup  ## Put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove caches and builds; runs in logs/ and the environment stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
