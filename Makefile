# Every target makes what it needs: the first one you run creates .venv, the others find it there.
# ARGS goes to the program behind the target: make test ARGS="-k parser"

PYTHON ?= python3
ARGS ?=
SEEDS ?= 2000
# Of pytest. Some tests wait for a process or a server: two workers more than there are processors keep all of them busy.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 2)))
DATABASE ?= sqlite

# Another Python than the default has a virtual environment of its own: `make test PYTHON=python3.13` leaves .venv alone.
ifeq ($(origin PYTHON),file)
VENV := .venv
else
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
endif
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUNS := $(VENV)/.runs
COMPILED := $(VENV)-compiled
SOURCES := hatch_build.py $(shell find src -type f -not -name '*.pyc' 2>/dev/null)

# Compiled modules are kept: whoever says otherwise pays for the compilation in every process that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# One step at a time even under `make -j`, so that the output reads from top to bottom.
.NOTPARALLEL:
.PHONY: modules pyright help demo test test-long compiled test-compiled coverage check sim chaos attack mutants pgbouncer model bench bench-peers bench-growth openapi lock fmt format lint types clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# Whoever only looks needs none of our tools; where they are, they stay.
demo: $(if $(wildcard $(INSTALLED)),$(INSTALLED),$(RUNS)) ## Run the demonstration
	@$(BIN)/python examples/demo.py $(ARGS)

test: lint types ## Lint, types and tests: what CI runs
	@echo "== tests"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not long" $(ARGS)

test-long: $(INSTALLED) ## The long sweeps: every scenario of chaos, denser interruptions, more programs
	@RHYTHM_TEST_LONG=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "long or sweep" $(ARGS)

compiled: $(COMPILED)/.installed ## Compile the hot modules, into an environment of its own (.venv-compiled)
	@$(COMPILED)/bin/python -m rhythm --version

# They fail at once if one of the modules is not compiled.
test-compiled: $(COMPILED)/.installed ## The tests with the compiled modules: make test-compiled ARGS="-k parser"
	@RHYTHM_TEST_COMPILED=1 $(COMPILED)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not long" $(ARGS)

coverage: $(INSTALLED) ## What the tests run of the code, a line for each package (ARGS="-n 4": for pytest)
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	@$(BIN)/python -m coverage run -m pytest -n $(WORKERS) -q -m "not long" $(ARGS) || echo "(some tests failed; what follows is what ran)" >&2
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage json -q -o - | $(BIN)/python -m tests.support.covered
	@echo "Line by line: $(BIN)/python -m coverage html, then htmlcov/index.html"

check: format test ## Format, lint, types and tests: before a commit

sim: $(INSTALLED) ## Simulate workers with faults: make sim SEEDS=2000 [DATABASE=postgres]
	@$(BIN)/python -m tests.engine.simulation $(SEEDS) --database $(DATABASE) $(ARGS)

chaos: $(INSTALLED) ## Kill, freeze and cut real workers and databases, about twelve minutes: make chaos ARGS="kills --minutes 2"
	@$(BIN)/python -m tests.chaos $(ARGS)

attack: $(INSTALLED) ## Attack Rhythm as its users could, on both databases: make attack ARGS="four_eyes --scale 0.1"
	@$(BIN)/python -m tests.attack $(ARGS)

mutants: $(INSTALLED) ## Take each guard of the protocol away: its tests must fail
	@$(BIN)/python -m tests.mutants $(ARGS)

pgbouncer: $(INSTALLED) ## Run the tests of PostgreSQL through PgBouncer
	@RHYTHM_TEST_THROUGH=pgbouncer $(BIN)/python -m pytest -n auto tests/store tests/worker tests/app $(ARGS)
	@RHYTHM_TEST_THROUGH=pgbouncer $(BIN)/python -m pytest -n auto -k postgres tests/engine tests/cli/test_worker.py tests/cli/test_worker_seen.py $(ARGS)

model: $(INSTALLED) ## Prove the protocol's model with Spin
	@$(BIN)/python -m tests.model

bench: $(INSTALLED) ## Run the benchmarks
	@$(BIN)/python -m bench $(ARGS)

# Installs them first, each into a virtual environment of its own below .cache/peers; Restate's server comes by npm.
bench-peers: $(INSTALLED) ## Run us and other engines in the same jobs, a quarter of an hour or more: make bench-peers ARGS="j3 j2 --only rhythm,restate --rounds 1"
	@$(BIN)/python -m bench.peers $(ARGS)

bench-growth: $(INSTALLED) ## How the cost of work grows with what is in the database and how many take part, twenty minutes: make bench-growth ARGS="finished workers --scale 0.1"
	@$(BIN)/python -m bench.growth $(ARGS)

modules: $(INSTALLED) ## Write what the docs take from the code anew: lists of modules and transitions, messages of Python workflows
	@$(BIN)/python -m tests.modules
	@$(BIN)/python -m tests.support.drawn_lifecycle
	@$(BIN)/python -m tests.python.rewrites

# Not in the lock file: it brings a Node.js of its own.
pyright: $(INSTALLED) ## Check the types of the examples and of a user's project with pyright, too
	@$(BIN)/python -c 'import pyright' 2>/dev/null || $(BIN)/python -m pip install -q --disable-pip-version-check 'pyright[nodejs]'
	@$(BIN)/python -m tests.python.type_checkers

openapi: $(INSTALLED) ## Write docs/openapi.json anew, after a change of the HTTP interface
	@$(BIN)/python -m rhythm.http > docs/openapi.json

# Versions and hashes for every platform and Python. No address of an index is written down: pip finds them where you have told it to.
lock: $(INSTALLED) ## Write requirements-dev.lock anew, after a change of the dependencies (ARGS=--upgrade: newer ones)
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'uv>=0.5'
	@$(BIN)/python -m uv pip compile -q --universal --python-version 3.11 --extra dev --generate-hashes --no-annotate --no-emit-index-url \
		--no-emit-find-links --custom-compile-command "make lock" pyproject.toml -o requirements-dev.lock $(ARGS)

fmt: $(INSTALLED) ## Format the code and fix what the linter can fix
	@$(BIN)/python -m ruff format .
	@$(BIN)/python -m ruff check --fix .

clean: ## Remove .venv, caches and build products
	rm -rf .venv .venv-* .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name .git -prune -o -type d -name __pycache__ -exec rm -rf {} +

format: $(INSTALLED)
	@echo "== format"
	@$(BIN)/python -m ruff format --check . || { echo "Run 'make fmt' to format the code." >&2; exit 1; }

lint: $(INSTALLED)
	@echo "== lint"
	@$(BIN)/python -m ruff check .

types: $(INSTALLED)
	@echo "== types"
	@$(BIN)/python -m mypy

# A .venv that works is kept, so a change of pyproject.toml costs seconds; one that does not (half made, or its Python is
# gone) is made anew. Tools run as `python -m` because the scripts in .venv/bin break in directories with long names.
define make_venv
@$(PYTHON) -c '' 2>/dev/null || { echo "Rhythm needs Python 3.11 or newer; '$(PYTHON)' does not run. Try: make PYTHON=python3.11" >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Rhythm needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "'$(PYTHON)' has no venv module. Install it (on Debian and Ubuntu the package is python3-venv)." >&2; exit 1; }
@echo "Installing Rhythm$(1) into $(VENV) (once)…"
@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
endef

# Everything has the version, and the hash, of the lock file: development and CI see the same.
$(INSTALLED): pyproject.toml requirements-dev.lock
	$(call make_venv, and its tools)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The tools once, and a new wheel whenever a source has changed.
$(COMPILED)/.tools $(COMPILED)/.installed: VENV := $(COMPILED)
$(COMPILED)/.tools $(COMPILED)/.installed: BIN := $(COMPILED)/bin

$(COMPILED)/.tools: pyproject.toml requirements-dev.lock
	$(call make_venv, and its tools)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(COMPILED)/.installed: $(COMPILED)/.tools $(SOURCES)
	@echo "Compiling Rhythm (a minute or two)…"
	@RHYTHM_COMPILED=1 $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall .
	@touch $@

# What a user installs.
$(RUNS): pyproject.toml
	$(call make_venv)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[server]'
	@touch $@
