# Everything a newcomer needs: `make demo` and `make test` do all that is missing, from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := .venv-peers
FLOWER := .venv-flower

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-engines coverage lint format architecture bench bench-peers sanitize fuzz clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/ostraka/nets/native/*.cpp src/ostraka/nets/native/*.h)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing (the first time takes a few minutes) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy setuptools wheel
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

setup: $(READY)  ## create .venv and install everything into it

demo: $(READY)  ## ten parties with two classes each: train, vote, compare (about a minute)
	@$(BIN)/ostraka demo

# Files in their order: by number of tests, the few long ones would come last, for one process alone.
test: $(READY)  ## the test suite (a few minutes on two cores)
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: $(READY)  ## the tests that take minutes each
	@$(BIN)/pytest -m slow

# Flower caps versions of what we use (rich, packaging): it has an environment of its own, with Ray.
$(FLOWER)/.ready: pyproject.toml constraints.txt | $(READY)
	@test -x $(FLOWER)/bin/python || $(PYTHON) -m venv $(FLOWER)
	@echo "Installing Flower and Ray into $(FLOWER) ..."
	@torch=$$($(BIN)/python -c 'import torch; print(torch.__version__.partition("+")[0])') && \
	tested=$$(grep -E '^(flwr|ray)==' constraints.txt) && \
	$(FLOWER)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[flower,ray]" $$tested "torch==$$torch" pytest hypothesis
	@touch $@

test-engines: $(READY) $(FLOWER)/.ready  ## engines beyond one machine: a Ray cluster and a Flower federation on this one (a few minutes)
	@$(FLOWER)/bin/python -m pytest -m engines -p no:xdist tests/engines tests/federation

# Apart from `test`, as counting takes a third more time. Worker processes are not followed.
coverage: $(READY)  ## the test suite, and the share of lines it runs, layer by layer
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --cov=ostraka --cov-report=
	@for layer in src/ostraka/[a-z]*/ src/ostraka/; do \
	  printf '%-12s %3s %%\n' "$$(basename $$layer)" "$$($(BIN)/coverage report --include="$$layer**" --format=total)"; \
	done

bench: $(READY)  ## speed beside plain torch; writes docs/results/speed.md (about half an hour)
	@$(BIN)/python -m benchmarks.speed

# Frameworks that want other versions of what we use have an environment of their own.
$(PEERS)/.ready: pyproject.toml | $(READY)
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo "Installing pfl, fluke and Flower into $(PEERS) ..."
	@torch=$$($(BIN)/python -c 'import torch; print(torch.__version__.partition("+")[0])') && \
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check ".[bench-peers]" "torch==$$torch"
	@touch $@

bench-peers: $(READY) $(PEERS)/.ready  ## rounds of FedAvg beside pfl, fluke and Flower
	@$(BIN)/python -m benchmarks.speed --only peers --peers $(PEERS)/bin/python

sanitize:  ## the native kernel under the address and undefined-behaviour sanitizers
	@bash tests/nets/native_sanitize/run.sh

SECONDS ?= 60
fuzz: $(READY)  ## throw changed files at the reader of member files (SECONDS=60)
	@$(BIN)/python -c 'import atheris' 2> /dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[fuzz]"
	@$(BIN)/python -m tests.store.fuzz_member $(SECONDS)

lint: $(READY)  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY)  ## let ruff format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

architecture: $(READY)  ## draw the layers in docs/architecture.md again
	@$(BIN)/python -m tests.architecture.draw

clean:  ## remove what was built, but not results
	@rm -rf $(VENV) $(PEERS) $(FLOWER) build dist src/*.egg-info src/ostraka/nets/native/*.so
