# The front door. `make setup` builds .venv by itself; every other target depends on it.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
OUT ?= results

.PHONY: setup reproduce test lint docs numbers gallery league bench prove bench-peers bench-mixed clean help

help:            ## show this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.installed  ## make .venv and install posse into it

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"  # the first that knows dependency groups
	$(BIN)/python -m pip install --quiet --group dev --editable ".[all]"
	@touch $@
	@echo "Installed. Type 'source $(BIN)/activate' once, or write $(BIN)/posse."

reproduce: setup ## draw the paper's figures from fresh runs: results/report.html
	$(BIN)/posse reproduce --quick --jobs $(JOBS) --out $(OUT)

test: setup lint ## static checks, then every test
	$(BIN)/python -m pytest -n $(JOBS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(VENV)/site

lint: setup      ## ruff, mypy, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup      ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

numbers: setup   ## write into the pages what their code prints and what the proofs found
	$(BIN)/python -m docs.stored
	OPENBLAS_CORETYPE=Haswell $(BIN)/python docs/pages.py

gallery: setup   ## draw docs/gallery from its stored results; OUT=... takes those of a full run first
	$(BIN)/python docs/gallery/build.py $(if $(filter file,$(origin OUT)),,$(OUT))

league: setup    ## draw the league's page from its stored results; OUT=... takes those of a full run first
	$(BIN)/python docs/gallery/league.py $(if $(filter file,$(origin OUT)),,$(OUT))

bench: setup     ## measure the simulator and the solvers, as ratios taken in one run
	$(BIN)/python -m pytest benchmarks -o python_files="bench_*.py" -p no:xdist --quiet \
	    --benchmark-columns=median,iqr --benchmark-sort=fullname
	$(BIN)/python -m benchmarks

prove: setup     ## run the long proofs whole, and store what they found in proofs/results and on the pages
	$(BIN)/python -m proofs
	$(BIN)/python -m docs.stored

bench-peers: setup ## measure posse beside other bandit libraries, installed into .venv-peers (a quarter of an hour)
	$(BIN)/python -m benchmarks.peers

bench-mixed: setup ## measure FactorPriorRegressor beside mixed models, installed into .venv-peers (an hour)
	$(BIN)/python -m benchmarks.mixed_models

clean:           ## remove what make made
	rm -rf $(VENV) .venv-peers site results
