# Every target builds the environment it needs, once, in .venv.
# Only python3 (3.11 or newer), pip and make are required.

PYTHON ?= python3
ARGS ?=
CHECK ?=
BENCHMARKS ?= benchmarks/core.py benchmarks/pose_recovery.py benchmarks/projection.py \
  benchmarks/projection_speed.py benchmarks/device.py

FUZZERS := fuzz/model_files.py fuzz/pictures.py fuzz/step_files.py fuzz/checkpoints.py

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# What each environment installs: .venv/.stamp-NAME stands for patternfold[EXTRAS_NAME].
EXTRAS_demo := demo
EXTRAS_test := test
EXTRAS_dev := dev
EXTRAS_bench := bench,test
EXTRAS_docs := docs
EXTRAS_release := release

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PRECIOUS: $(VENV)/.stamp-%
.PHONY: help release matrix demo test exhaustive fuzz torture browser check format bench docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.stamp-demo  ## run the demonstration
	$(BIN)/patternfold demo --force $(ARGS)

test: $(VENV)/.stamp-test browser  ## run the tests, two at a time (ARGS="-k pattern" is passed to pytest)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m 'not exhaustive' $(ARGS)

exhaustive: $(VENV)/.stamp-test  ## run the tests that take minutes: more experiments on small instances
	$(BIN)/python -m pytest -n 2 -m exhaustive $(ARGS)

fuzz: $(VENV)/.stamp-test  ## try damaged files (ARGS="--cases 200000 --seed 1")
	@set -e; for file in $(FUZZERS); do echo "== $$file"; $(BIN)/python $$file $(ARGS); done

# A share of what the weekly job runs, in about ten minutes; SEED=7 for other cases.
SEED ?= 0
CORES := $(shell nproc 2>/dev/null || echo 2)
TORTURE := \
  "fuzz/model_files.py --cases 10000000 --minutes 1 --processes $(CORES) --seed $(SEED)" \
  "fuzz/pictures.py --cases 10000000 --minutes 0.7 --processes $(CORES) --seed $(SEED)" \
  "fuzz/step_files.py --cases 10000000 --minutes 0.3 --processes $(CORES) --seed $(SEED)" \
  "fuzz/checkpoints.py --cases 10000000 --minutes 0.3 --processes $(CORES) --seed $(SEED)" \
  "fuzz/hostile_folder.py --good 2000" \
  "fuzz/faults.py --cases 2 --minutes 4 --jobs $(CORES) --seed $(SEED)" \
  "fuzz/interrupts.py --cases 5 --minutes 1 --jobs $(CORES) --seed $(SEED)" \
  "fuzz/oddities.py --only threads repeats"

torture: $(VENV)/.stamp-test  ## ten minutes of damaged files, faults, interrupts and odd settings (SEED=0)
	@worst=0; for line in $(TORTURE); do echo "== $$line"; $(BIN)/python $$line || worst=1; done; exit $$worst

# Pages are tested in a real browser: the machine's, or else the system's package or playwright's own.
browser: $(VENV)/.stamp-test
	@for name in chromium chromium-browser google-chrome chrome; do \
	    command -v $$name >/dev/null && exit 0; done; \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null 2>&1 \
	  || $(BIN)/playwright install chromium >/dev/null 2>&1 \
	  || echo "No Chromium could be installed; tests of pages in a browser are skipped." >&2

check: $(VENV)/.stamp-dev  ## check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(VENV)/.stamp-dev  ## format the code and apply the safe lint fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.stamp-bench  ## run the benchmarks (BENCHMARKS="file ..." to choose)
	@set -e; for file in $(BENCHMARKS); do echo "== $$file"; $(BIN)/python $$file $(ARGS); done

docs: $(VENV)/.stamp-docs  ## build the documentation in docs/_build/html; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# CHECK=--rehearse before the changelog bears a date; CHECK="--rehearse --quick" tests the wheel less.
release: $(VENV)/.stamp-release test check docs  ## check that what is here can be released, and build it
	$(BIN)/python .ci/release.py $(CHECK)

matrix: $(VENV)/.stamp-release  ## test the wheel with Python 3.11 to 3.14, oldest and newest libraries
	$(BIN)/python .ci/matrix.py $(ARGS)

clean:  ## remove the environment, caches and build outputs
	rm -rf $(VENV) build dist demo-output docs/_build docs/generated docs/auto_examples \
	  .pytest_cache .ruff_cache
	find src tests benchmarks fuzz -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "patternfold needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name another one, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-%: pyproject.toml $(VENV)/.stamp-venv
	@echo "Installing patternfold[$(EXTRAS_$*)] into $(VENV), once; this may take a few minutes ..."
	@$(PIP) install --editable '.[$(EXTRAS_$*)]'
	@touch $@
