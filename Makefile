SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
# The embedded cluster's environment (kubeconfig, the Pulumi that was built for it), with this checkout's Python first.
ENV := eval "$$($(PYTHON) -m devcluster env)"; export PATH="$(CURDIR)/$(VENV)/bin:$$PATH";
UNIT := not cluster and not tensorflow

.PHONY: help install up operators env down test lint test-unit test-trainer test-cluster soak bench docs \
	launch-chart-check chromium lock

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/run ## make the Python environment that `pulumi up` needs

up: $(VENV)/run operators ## start the embedded cluster, train on it with `pulumi up -s dev`, print the result
	@$(ENV) pulumi stack select --create dev >/dev/null; pulumi up -s dev --yes --skip-preview
	@$(ENV) echo "Result, from worker 0:"; eval "$$(pulumi stack output -s dev workerLogs)" | tail -n 1
	@echo
	@echo 'Next, in a shell after   eval "$$(make env)":'
	@echo '  pulumi stack output -s dev                                   the commands that show each object'
	@echo '  pulumi config set -s dev numNodes 3 && pulumi up -s dev      the same training on three nodes'

operators: $(VENV)/run ## start the embedded cluster and install JobSet, Kubeflow Trainer and Volcano on it
	@$(PYTHON) -m devcluster up
	@$(ENV) cd operators; pulumi stack select --create devcluster >/dev/null; \
		pulumi up -s devcluster --config-file "$$TFTRAINER_OPERATORS_CONFIG" --yes --skip-preview

env: $(VENV)/run ## print the embedded cluster's environment, for `eval "$(make env)"`
	@$(PYTHON) -m devcluster env; echo 'export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"'

down: $(VENV)/run ## stop and remove what `make up` started, and nothing else
	@$(PYTHON) -m devcluster down

test: lint test-unit test-trainer test-cluster ## all tests, those on the embedded cluster included

lint: $(VENV)/dev ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy components devcluster tests bench __main__.py
	cd trainer && ../$(VENV)/bin/mypy --config-file ../pyproject.toml .
	cd operators && MYPYPATH=.. ../$(VENV)/bin/mypy --config-file ../pyproject.toml .
	cd package && MYPYPATH=.. ../$(VENV)/bin/mypy --config-file ../pyproject.toml .

test-unit: $(VENV)/dev ## the fast tests: no root, no cluster
	$(VENV)/bin/pytest --numprocesses 4 -m "$(UNIT)"

test-trainer: $(VENV)/dev ## real TensorFlow worker processes on loopback
	$(VENV)/bin/pytest -m tensorflow

test-cluster: $(VENV)/dev operators chromium ## the tests on the embedded cluster: Linux, root and Go
	@$(ENV) pytest --durations=15 -m "cluster and not soak"

soak: $(VENV)/dev operators ## the long chaos, re-run and replace tests, whose figures are in docs
	@$(ENV) pytest -m soak -rP

docs: $(VENV)/run ## write the tables of settings in README.md and docs/config.md again
	$(PYTHON) -m components.settings_table

launch-chart-check: $(VENV)/dev operators ## run one job through the official launch-agent chart: CHART=folder
	@$(ENV) python -m tests.launch.chart_check "$(CHART)"

chromium: # a browser for the test that looks at TensorBoard
	@command -v chromedriver >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; }

bench: $(VENV)/dev operators ## run every benchmark: bench/results.json, and docs/performance.md from it
	@$(ENV) python -m bench.report

lock: $(VENV)/uv ## pin every Python package again after an edit of pyproject.toml
	$(VENV)/bin/uv pip compile pyproject.toml --group devcluster $(COMPILE) -o requirements.lock
	$(VENV)/bin/uv pip compile pyproject.toml --group test $(COMPILE) -c requirements.lock -o requirements-dev.lock
COMPILE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet

$(VENV)/uv:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3: this is %d.%d; 3.11 or newer is needed" % sys.version_info[:2])'
	@python3 -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
	@touch $@

# Compiled, because where PYTHONDONTWRITEBYTECODE is set every `pulumi up` would compile all that it imports.
$(VENV)/run: requirements.lock | $(VENV)/uv
	@$(VENV)/bin/uv pip install --quiet --compile-bytecode --python $(PYTHON) --require-hashes -r $<
	@touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/run
	@$(VENV)/bin/uv pip install --quiet --compile-bytecode --python $(PYTHON) --require-hashes -r $<
	@touch $@
