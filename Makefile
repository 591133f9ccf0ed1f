# make demo   score the shipped rollouts on the embedded judge
# make test   format, lint, types, import contracts, tests with branch coverage, the wheel
# make perf   the measurements in tests/performance
# make trainers   an environment in .venvs/ for each trainer that cannot share ours, for its tests
# Each does the set-up that it needs, once: a .venv with the pinned CPU dependencies.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
TORCH := 2.13.0

export SF_CACHE_DIR ?= $(HOME)/.cache/starforge_rewards

TRAINERS := $(patsubst configs/locks/trainers/%.txt,%,$(wildcard configs/locks/trainers/*.txt))

.PHONY: install demo test perf trainers

install: .venv/.run

demo: .venv/.run
	$(BIN)/starforge demo

test: .venv/.dev .venvs/verifiers/.done .venvs/inspect/.done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

perf: .venv/.dev
	$(BIN)/python -m tests.performance

# torch first and alone: from where pip looks already, else from its own index of CPU wheels. The
# ordinary wheel is a CUDA build that wants several GB more.
.venv/.run: configs/locks/cpu.txt pyproject.toml Makefile
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) torch==$(TORCH)+cpu || $(PIP) torch==$(TORCH)+cpu --index-url https://download.pytorch.org/whl/cpu
	$(PIP) --no-deps -r configs/locks/cpu.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

.venv/.dev: .venv/.run configs/locks/dev.txt
	$(PIP) --no-deps -r configs/locks/dev.txt
	touch $@

trainers: $(TRAINERS:%=.venvs/%/.done)

# A trainer without its dependencies: what we have of these, its tests find behind its own packages
# (tests/training/venvs.py), and they skip where it is not built.
.venvs/%/.done: configs/locks/trainers/%.txt
	test -x .venvs/$*/bin/python || $(PYTHON) -m venv .venvs/$*
	echo '*' > .venvs/.gitignore
	.venvs/$*/bin/pip install --quiet --disable-pip-version-check --no-compile --no-deps -r $<
	touch $@
