# Every target sets up .venv by itself, and again when pyproject.toml changes.
# Another interpreter: make PYTHON=/path/to/python3.12 ...

BIN := .venv/bin
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help install train test test-slow lint format wheel-check clean

help:  ## this list
	@echo "batchppo: make TARGET, where TARGET is one of"
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16
	@echo "The first target you run sets up .venv (needs Python 3.11 or newer; takes minutes, once)."

install:  ## set up .venv for development; then: . .venv/bin/activate
	@.ci/venv dev

train:  ## train an agent on CartPole, evaluate it, and record a video (under a minute)
	@.ci/venv render
	@.ci/train

test:  ## run the tests (under 10 minutes on 2 cores)
	@.ci/venv dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow:  ## run the slow tests: soak, learning on many seeds
	@.ci/venv dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow --timeout 900

lint:  ## ruff, formatting, and mypy --strict
	@.ci/venv dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy batchgym batchppo cli

format:  ## format the sources, and mend what ruff can
	@.ci/venv dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

wheel-check:  ## build the wheel and train with it in a clean environment
	@.ci/venv dev
	@.ci/wheel

clean:  ## remove .venv and everything that was built; keeps runs/
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
