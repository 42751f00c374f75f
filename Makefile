# `make train` and `make test` require only Python 3.11 to 3.13. They install everything else.
# The recipes use POSIX tools and GNU make 3.81, so that they run on Linux and on macOS.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first of these that is Python 3.11 to 3.13 is used. To use another: make setup PYTHON=/path/to/python
PYTHON ?= python3 python3.13 python3.12 python3.11
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TOOLS := build/tools

.PHONY: help setup build docs train results benchmarks dashboard test test-all test-browser faults lint format audit resolve clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s%s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED)  ## Make .venv with all packages, pinned by constraints.txt
	@echo "Done. Now run: source $(BIN)/activate"

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Installing into $(VENV): some minutes, and several GB with the CUDA build of PyTorch"
	@sh scripts/environment.sh $(VENV) "$(PYTHON)" -c constraints.txt -e '.[dev]'
	@touch $@

train: $(INSTALLED)  ## Train, validate and test the sentiment classifier, the main job
	$(BIN)/python src/train.py task=sentiment model=small threads=1

results: $(INSTALLED)  ## Measure RESULTS.md, or some sections: ONLY="stars names"; the same command continues: hours
	$(BIN)/python benchmarks/results.py $(if $(ONLY),--only $(ONLY))

benchmarks: $(INSTALLED)  ## Measure the aims of benchmarks/README.md: an hour; ONLY="loop startup", NANOGPT=<a clone of it>
	$(BIN)/python benchmarks/aims.py $(if $(ONLY),--only $(ONLY)) $(if $(NANOGPT),--nanogpt $(NANOGPT))

dashboard: $(INSTALLED)  ## Write the W&B workspace as logs/dashboard.json; src/dashboard.py --push saves it on W&B
	$(BIN)/python src/dashboard.py

build: $(INSTALLED)  ## Build the wheel and the source distribution in dist/
	$(BIN)/python -m build

docs: $(INSTALLED)  ## Build the documentation as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

test: $(INSTALLED)  ## Run the tests that are not marked slow
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations=10

test-all: $(INSTALLED)  ## Run all tests, with a new process for each script: many minutes more
	TRUE_PROCESSES=1 $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations=10 -m 'not faults and not clusters'

test-browser: $(INSTALLED)  ## Test the pages in a browser: widths, color schemes, keyboard, accessibility; about five minutes
	$(BIN)/python -m pytest -q -m browser tests/lab --durations=5

faults: $(INSTALLED)  ## Run tests with kills, damaged and hostile files and full disks; FAULTS_SEED=2 tries others: about 20 minutes
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m faults tests/faults

test-clusters: $(INSTALLED)  ## Run sweeps on a Slurm and a Ray of two nodes that the tests start on this machine: minutes
	$(BIN)/python -m pytest -q -m clusters tests/clusters --durations=0

lint: $(INSTALLED)  ## Check style, types and the direction of the imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-logo

format: $(INSTALLED)  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

audit: $(TOOLS)/.installed  ## List known vulnerabilities of the pinned versions; requires the network
	$(TOOLS)/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r constraints.txt

resolve: $(TOOLS)/.installed  ## Check that the pins install on each supported Python and platform; requires the network
	$(TOOLS)/bin/python scripts/resolve.py

$(TOOLS)/.installed:
	@mkdir -p build
	@sh scripts/environment.sh $(TOOLS) "$(PYTHON)" pip-audit uv
	@touch $@

clean:  ## Remove caches and builds; runs in logs/ and the environment stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d ! -path './$(VENV)/*' -prune -exec rm -rf {} +
