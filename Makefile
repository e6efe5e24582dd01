# Every target makes its own environment; only Python, pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# A file stays with one worker, and its fixtures are made once. Examples of properties are the same in every
# run; `make test-slow` draws others.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile
SAME := --hypothesis-profile=ci

# Tests that play every kernel with a vector loop.
PLAIN_SIMD := $(addprefix tests/kernels/test_,lanes.py keyed.py choosing.py averages.py small_games.py last_round.py) \
	tests/policies/test_golden_actions.py tests/engine/test_fast_equals_reference.py tests/engine/test_constraints.py

.PHONY: test-lowest test-router router-demo mesh-demo chaos demo reproduce arena docs test test-fast test-slow test-plain-simd numbers mutants lint bench bench-quick clean

$(VENV)/.lab: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[lab]"
	touch $@

$(VENV)/.node: $(VENV)/.lab
	$(PIP) -e ".[lab,node]"
	touch $@

$(VENV)/.docs: $(VENV)/.lab
	$(PIP) -e ".[lab,docs]"
	touch $@

$(VENV)/.dev: $(VENV)/.lab
	$(PIP) -e ".[dev]"
	touch $@

demo: $(VENV)/.lab
	$(BIN)/rumormill reproduce fig1a --quick

# Eight live nodes on this machine, one killed, one cut off; under a minute.
mesh-demo: $(VENV)/.node
	$(BIN)/python scripts/mesh_demo.py

# Four gateways route model traffic with a node each, beside LiteLLM's own rules; two minutes, its own environment.
ROUTER := .venv-router
router-demo: $(ROUTER)/.done
	$(ROUTER)/bin/python examples/router/demo.py

# The plug-in with the real LiteLLM, which leaves sockets open.
test-router: $(ROUTER)/.done
	$(ROUTER)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pytest
	$(ROUTER)/bin/python -m pytest -W default -p no:unraisableexception tests/live/test_router_litellm.py

$(ROUTER)/.done: pyproject.toml examples/router/constraints.txt
	$(PYTHON) -m venv $(ROUTER)
	$(ROUTER)/bin/python -m pip install --quiet --disable-pip-version-check -c examples/router/constraints.txt -e ".[router]"
	touch $@

# Real nodes in network namespaces under a hundred faults and load, against a ledger; about four minutes, as root.
chaos: $(VENV)/.node
	$(BIN)/python scripts/chaos.py

# All panels at their small scale, with the verdicts; real graphs if they are in the data directory.
reproduce: $(VENV)/.lab
	$(BIN)/rumormill reproduce all --quick --out runs/quick

# The arena at its small scale with a few entries: every kind of cell, about two minutes with compilation.
arena: $(VENV)/.lab
	$(BIN)/rumormill arena --quick --entries Default --entries KMP --entries Alone --entries coop-UCB2 --out runs/arena

# The site, in build/site/html; no network, and every warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m scripts.docs

# The quick tests of every room, for the inner loop: no game here needs a kernel that takes long to compile
# but the one of all means.
in = $(addprefix tests/$(1)/test_,$(addsuffix .py,$(2)))
FAST := $(call in,.,house core seat bad_input machine checks) tests/protocol \
	$(call in,conformance,laws networks channels samples) $(call in,arms,bandit bad_laws replay objective) \
	$(call in,estimators,golden radius) $(call in,graphs,network cover leaders) \
	$(call in,policies,golden_actions order_of_arrival hostile_messages unreliable_channels) \
	$(call in,kernels,keyed choosing small_games last_round) $(call in,engine,trace) \
	$(call in,theory,bounds lower) $(call in,experiments,specs bad_specs store manifest) \
	$(call in,figures,agents_and_messages network_picture published) $(call in,report,report) \
	$(call in,advice,logs) $(call in,arena,score suite) $(call in,live,node journal light mesh_file http) \
	$(call in,cli,words data progress figure watch) $(call in,docs,references)

test-fast: $(VENV)/.dev
	$(PYTEST) $(SAME) -m "not slow" -k "not several_arms" $(FAST)

test: $(VENV)/.dev
	$(PYTEST) $(SAME) -m "not slow"

# Also the site followed to the letter in a fresh environment, and 300 small faults at random places of the
# whole tree: what share do the ordinary tests notice?
test-slow: $(VENV)/.dev
	$(PYTEST) -m slow
	$(PYTEST) -m "not slow" $$(grep -rl --include='test_*.py' 'from hypothesis' tests)
	$(BIN)/python -m scripts.newcomer
	$(BIN)/python scripts/mutants.py --sample 300 --seed 1 --thorough

# With the plain twins of the vector loops, as where numba does not compile LLVM IR: equal to the bit too.
test-plain-simd: $(VENV)/.dev
	RUMORMILL_SIMD=0 $(BIN)/python -m pytest -m "not slow" -k "not (workers or every_law or free-)" $(PLAIN_SIMD)

# The declared lower bounds, exactly: README's snippets, a panel, advice and a node must run with them.
LOWEST := .venv-lowest
test-lowest: $(LOWEST)/.done
	$(LOWEST)/bin/python scripts/smoke.py

$(LOWEST)/.done: pyproject.toml scripts/lowest.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python scripts/lowest.py lab node > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/lowest.txt -e ".[lab,node]"
	touch $@

# Tables of README and docs that are older than the code they measure, measured again; MINUTES=N: up to N minutes each.
numbers: $(VENV)/.dev
	$(BIN)/python -m scripts.measured_tables $(if $(MINUTES),--minutes $(MINUTES))

# Known faults, planted one at a time: a test must notice each. About an hour and a half on two cores.
mutants: $(VENV)/.dev
	$(BIN)/python scripts/mutants.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What people wait for, under three minutes; AGAINST=COMMIT measures another commit in turns.
bench-quick: $(VENV)/.lab
	$(BIN)/python scripts/bench_waits.py $(if $(AGAINST),--against $(AGAINST))

bench: $(VENV)/.node
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_waits.py
	$(BIN)/python scripts/bench_peers.py
	$(BIN)/python scripts/bench_advice.py
	$(BIN)/python scripts/bench_advice.py --rows 10000000
	$(BIN)/python scripts/bench_live.py

clean:
	rm -rf $(VENV) $(LOWEST) $(ROUTER) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
