# make demo    compile, verify and time a real network          (needs Python >= 3.11, pip, make)
# make test    the test suite, a process more than cores (JOBS=1: in one, one test after another)
# make test-torch  the tests of what needs torch, in a virtual environment that has it
# make conformance  all of onnx's backend suite; stop it and start it again as you like
# make check   formatting, lint, strict types
# make bench   the benchmark suite of benchmarks/

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PEERS  := $(VENV)/.peers
NVRTC  := $(VENV)/.nvrtc
TORCH  := $(VENV)/.torch
DEMO   ?= demo
EFFORT ?= quick
JOBS   ?= auto

SOURCES := ansorpy tests $(wildcard benchmarks) $(wildcard examples)
LINKER  := $(shell command -v cc || command -v gcc || command -v clang)

.PHONY: demo test test-torch conformance check bench clean
.DELETE_ON_ERROR:

$(STAMP): requirements/pinned.txt requirements/linker.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ansorpy needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 5; }
	$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt install python3-venv"; exit 5; }
	$(BIN)/python -m pip install --quiet -r requirements/pinned.txt $(if $(LINKER),,-r requirements/linker.txt)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(PEERS): requirements/bench.txt $(STAMP)
	$(BIN)/python -m pip install --quiet -r requirements/bench.txt
	touch $@

$(NVRTC): requirements/cuda.txt $(STAMP)
	$(BIN)/python -m pip install --quiet -r requirements/cuda.txt
	touch $@

$(TORCH): requirements/torch.txt $(STAMP)
	$(BIN)/python -m pip install --quiet -r requirements/torch.txt
	touch $@

demo: $(PEERS)
	mkdir -p $(DEMO)
	$(BIN)/python -m examples.light_model squeezenet $(DEMO)/squeezenet.onnx --seed 0
	$(BIN)/ansorpy compile $(DEMO)/squeezenet.onnx -o $(DEMO)/squeezenet.so --effort $(EFFORT) --db $(DEMO)/squeezenet.db
	$(BIN)/ansorpy verify $(DEMO)/squeezenet.so --model $(DEMO)/squeezenet.onnx --against onnxruntime
	$(BIN)/ansorpy bench $(DEMO)/squeezenet.so --model $(DEMO)/squeezenet.onnx --against onnxruntime openvino

# The tests start hundreds of processes: compiled modules are kept, whatever the shell prefers.
test: export PYTHONDONTWRITEBYTECODE =
test: $(NVRTC)
	$(BIN)/python -m pytest $(if $(filter-out 1,$(JOBS)),--numprocesses $(JOBS) --dist loadfile)

test-torch: $(TORCH)
	$(BIN)/python -m pytest tests/frontend/torch tests/torch_backend tests/test_doc_blocks.py -k "torch"

conformance: $(STAMP)
	$(BIN)/python -m tests.campaigns.conformance $(if $(filter-out auto,$(JOBS)),--jobs $(JOBS))

check: $(STAMP)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy

bench: $(PEERS)
	$(BIN)/python -m benchmarks.ops --json ops.json
	$(BIN)/python -m benchmarks.networks --json networks.json

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
