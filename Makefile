# Every target does its own set-up in $(VENV); `make help` lists them.

VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?= -n logical --maxprocesses 4 --dist loadfile

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# One version of each package for every Python that has wheels of it.
LOCK := uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 \
	--no-emit-package streaming-image-env --annotation-style line

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench lint format lock docker-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-20s%s\n", $$1, $$2}'

setup: $(INSTALLED) ## install everything into .venv

demo: $(INSTALLED) ## train, evaluate and score a small agent; prints where the results are
	@$(BIN)/python scripts/demo.py

bench: $(INSTALLED) ## measure speed beside the peers, under ten minutes on an idle machine; to out/bench
	$(BIN)/python -m benchmarks.run all --quick

# pytest comes last: whoever watches the output reads its closing line.
test: lint ## lint, types, import contract, tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(INSTALLED) ## ruff, mypy and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(INSTALLED) ## renew the lock files from pyproject.toml (UPGRADE=--upgrade for new versions)
	@test -x $(BIN)/uv || $(PIP) install uv
	PATH="$(BIN):$$PATH" $(LOCK) $(UPGRADE) pyproject.toml -o requirements.txt
	PATH="$(BIN):$$PATH" $(LOCK) $(UPGRADE) --extra dev -c requirements.txt pyproject.toml \
		-o requirements-dev.txt

docker-check: ## build the image with buildah and run a training in it (Debian, root)
	bash docker/check.sh

clean: ## remove caches and build products; .venv and results stay
	rm -rf build dist streaming-image-env/dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# --no-compile: compiling all of TensorFlow takes a minute, the part that is imported a second.
$(INSTALLED): requirements-dev.txt pyproject.toml streaming-image-env/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
		echo "Python 3.11, 3.12 or 3.13 is needed; '$(PYTHON)' is" \
			"$$($(PYTHON) --version 2>/dev/null || echo 'not there')." \
			"Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing into $(VENV): a few minutes the first time"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --no-compile -r requirements-dev.txt
	@$(PIP) install --no-deps -e ./streaming-image-env -e .
	@touch $@
