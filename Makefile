# Every target works first on a fresh clone: it makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
ROOMS := protocols|servers|memo_store|analytics|producers|stream_app|views|gateway|pages|hearsay|clients/python
export PYTHONHASHSEED ?= 0
# Matrices are small: threads wait for each other, and tests of places take nine times as long. Commands do the same.
export OPENBLAS_NUM_THREADS ?= 1
# Compiled modules are kept, or every process of the tests would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long check servers mutants chaos chaos-gateways edge-chaos drills attacks deploy-test bench dist fresh lines size clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    run the festival week end to end in one process"
	@echo "make test    every check, and every test that is not long"
	@echo "make test-long  the tests that take long by nature (LONG=pages: one part of them)"
	@echo "make check   formatting, lint, types, layers, density (no tests)"
	@echo "make mutants changes of one token, at random, that no test notices (about an hour for a hundred; it can be resumed)"
	@echo "make chaos   a hundred faults of workers, brokers, logs, disks and Redis, and a recount (about an hour)"
	@echo "make chaos-gateways  the same for gateways: 10,000 reports of 50 devices (minutes)"
	@echo "make edge-chaos  the same for edges: 24 kills while 100,000 people call for 30 days (about an hour)"
	@echo "make drills  what operators do rarely: backup and restore, copied topics, brokers restarted in turn (minutes)"
	@echo "make attacks audits of every mechanism, of planted defects and of other libraries (minutes)"
	@echo "make deploy-test   image, compose, manifests, alerts: run, not only read (many minutes)"
	@echo "make bench   benchmarks: ratios measured side by side"
	@echo "make dist    wheels and an npm package, in dist"
	@echo "make size    tokens and density by room (WRITE=1 lowers the limits, COMPARE=COMMIT shows what changed)"
	@echo "make fresh   demo and tests in a fresh clone with an empty environment"

# uv, where there is one, is quicker than pip. Both show how far they are.
ifneq ($(shell command -v uv 2>/dev/null),)
INSTALL := uv pip install --python $(BIN)/python
UNINSTALL := uv pip uninstall --python $(BIN)/python
WHEEL := uv build --quiet --wheel --out-dir
else
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-compile
UNINSTALL := $(BIN)/python -m pip uninstall --yes
WHEEL := $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir
endif

.venv/bin/python:
	@echo "making .venv and installing into it: a minute or a few, once"
	$(PYTHON) -m venv .venv

# What version 0.2 was called has files of the same names, so it is uninstalled before, and not after.
without_former = $(if $(wildcard .venv/lib/python*/site-packages/hearsay-[0-9]*.dist-info),$(UNINSTALL) hearsay,:)

# What the demo needs.
.venv/ready: pyproject.toml constraints.txt | .venv/bin/python
	$(without_former)
	$(INSTALL) --constraint constraints.txt --editable '.[run]'
	touch $@

# What an extra of pyproject.toml needs besides: dev for checks and tests, deploy, and peers for attacks. One is installed at a time.
.venv/ready-%: pyproject.toml constraints.txt | .venv/bin/python
	$(without_former)
	$(INSTALL) --constraint constraints.txt --editable '.[$*]'
	touch .venv/ready $@
.venv/ready-deploy .venv/ready-peers: .venv/ready-dev

demo: .venv/ready
	$(BIN)/hearsay demo

check: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m scripts.size --check

# Real servers for the tests: Java, Maven and Redis installed where possible, Kafka fetched once into the cache.
servers: .venv/ready-dev
	sh scripts/servers.sh
	$(BIN)/hearsay stack fetch

# All modules are imported once before: on a fresh clone, three processes would compile the same ones at the same time.
test: check | servers
	@echo "importing all modules, once"
	@found=$$($(BIN)/python -m pytest --collect-only -qq 2>&1) || { echo "$$found" | tail -60; exit 1; }
	$(BIN)/python -m pytest -n 3 --dist loadgroup --durations 100

# What takes long by nature: pages as shell scripts, kills, browsers, large samples, mutations. LONG="pages" runs one part,
# LONG=--touched those of the folders that changed since all of them passed.
test-long: | servers
	$(BIN)/python -m tests.long $(LONG)

# Not part of the tests: it takes long. MUTANTS="--seed 2 --count 300" tries others, MUTANTS="--again" those that survived.
mutants: .venv/ready-dev
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Not part of the tests: it takes long. CHAOS="--faults 20 --seed 7" makes it shorter, or repeats a run.
chaos: | servers
	$(BIN)/python -m tests.chaos $(CHAOS)

# The same for two gateways in front of a broker, with 10,000 reports of 50 devices.
chaos-gateways: | servers
	$(BIN)/python -m tests.chaos --only gateways --faults 12 $(CHAOS)

# The same for two edges over a topic. EDGE_CHAOS="--people 2000 --days 4 --faults 4" makes it shorter.
edge-chaos: | servers
	$(BIN)/python -m tests.chaos --only edge --faults 24 $(EDGE_CHAOS)

# Not part of the tests: it takes minutes.
drills: | servers
	$(BIN)/python -m tests.drills

# Not part of the tests: it takes minutes. ATTACKS="conduct" runs one part.
attacks: .venv/ready-peers | servers
	$(BIN)/python -m tests.lab $(ATTACKS)

# Not part of the tests: it takes many minutes, and needs podman and more. DEPLOY="--only image,compose" runs some steps.
deploy-test: .venv/ready-deploy | servers
	sh scripts/deploy-tools.sh
	$(BIN)/python -m tests.deploy_test $(DEPLOY)

# BENCH="stream memo" runs some of them.
bench: | servers
	$(BIN)/python -m bench $(BENCH)

# What others install: the wheel, that of a device, and the npm package. What setuptools built of older files would be in them.
DIST ?= dist
dist: | .venv/bin/python
	rm -rf build clients/python/build $(DIST)/*hearsay*
	$(WHEEL) $(DIST) .
	$(WHEEL) $(DIST) ./clients/python
	npm pack --silent --pack-destination $(abspath $(DIST)) ./clients/javascript
	rm -rf build clients/python/build

# What a newcomer does: a clone, an empty environment, the README's two commands.
fresh:
	clone=$$(mktemp -d) && git clone --quiet . $$clone/hearsay && cd $$clone/hearsay && \
	env -i PATH="$$PATH" HOME="$$HOME" make demo && env -i PATH="$$PATH" HOME="$$HOME" make test && rm -rf $$clone

# The size of the project: rooms without the lab, the lab, both, and tests.
count = $$(git ls-files '*.py' | grep -E '^($(1))/' | xargs cat | wc -l)
lines:
	@echo "$(call count,$(ROOMS)) lines of Python in the rooms without the lab, $(call count,lab) in the lab, $(call count,$(ROOMS)|lab) with the lab, $(call count,tests) in the tests"

# What a reader pays, by room. `make check` fails if a room gets denser than scripts/size.json allows.
size: | .venv/bin/python
	@$(BIN)/python -m scripts.size $(if $(WRITE),--write) $(if $(COMPARE),--compare $(COMPARE))

clean:
	rm -rf .venv build dist *.egg-info
