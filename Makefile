# The commands that people type; CONTRIBUTING.md says more. `make test ARGS="tests/seeds -x"` hands
# arguments on.
PYTHON ?= python
ARGS ?=

# What depends on Numba most: kernels, compiled functions, dispatchers, the cache.
SAMPLE = tests/codegen tests/kernels/pointwise tests/math/test_functions.py \
	tests/jit/test_jit.py tests/jit/test_dispatcher_arguments.py

.PHONY: help test lint types oldest bench docs ci

help: ## list the commands
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/'

test: ## all tests and examples, in as many processes as there are cores
	$(PYTHON) -m pytest $(if $(ARGS),$(ARGS),-n auto)

lint: ## ruff: lint and format
	ruff check $(ARGS)
	ruff format --check $(ARGS)

types: ## mypy, of the package and of a page of a user's code; and stubtest
	mypy
	$(PYTHON) -m tests.docs.check_stub
	mypy --strict --follow-imports=silent tests/docs/typed_program.py

oldest: ## a sample of the tests on the oldest Numba and NumPy that pyproject.toml declares
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/pip install --quiet numba==0.61.0 numpy==1.26.4 .[test]
	build/oldest/bin/python -m pytest $(if $(ARGS),$(ARGS),-n auto $(SAMPLE))

bench: ## every benchmark once, on what is in the working tree
	asv run --python=same --quick $(ARGS)

docs: ## the examples of the pages, and sort PyTorch's names anew
	$(PYTHON) -m tests.docs.pytorch_names
	$(PYTHON) -m pytest README.md CONTRIBUTING.md docs tests/docs $(ARGS)

ci: ## everything, in a fresh copy and environment
	.ci/run
