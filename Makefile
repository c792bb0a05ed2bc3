# make demo    compile, verify and time a real network          (needs Python >= 3.11, pip, make)
# make test    the test suite, a process more than cores (JOBS=1: in one, one test after another)
# make test-emulated  code for other machines, run under qemu-user where that is found
# make test-torch  the tests of what needs torch, which it adds to the virtual environment
# make conformance  all of onnx's backend suite; stop it and start it again as you like
# make docs    the documentation as a site, in build/site
# make wheel-test  the wheel, installed into an empty environment of every Python at hand
# make check   formatting, lint, strict types
# make bench   the benchmark suite of benchmarks/: operators and networks, into build/
# make gallery  executes the notebooks of docs/gallery again
# make screenshots  the pictures of the report in docs/; needs chromium

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   ?= demo
EFFORT ?= quick
JOBS   ?= auto

SOURCES := ansorpy tests $(wildcard benchmarks) $(wildcard examples)
LINKER  := $(shell command -v cc || command -v gcc || command -v clang)

BROWSER := $(shell command -v chromium || command -v google-chrome)
SHOT    := $(BROWSER) --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=8000

.PHONY: demo test test-emulated test-torch conformance wheel-test docs gallery check bench screenshots clean
.DELETE_ON_ERROR:

$(STAMP): requirements/pinned.txt requirements/linker.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ansorpy needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 5; }
	$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt install python3-venv"; exit 5; }
	$(BIN)/python -m pip install --quiet -r requirements/pinned.txt $(if $(LINKER),,-r requirements/linker.txt)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# What requirements/NAME.txt lists, beside ansorpy, in the same virtual environment.
$(VENV)/.with-%: requirements/%.txt $(STAMP)
	$(BIN)/python -m pip install --quiet -r $<
	touch $@

demo: $(VENV)/.with-bench
	mkdir -p $(DEMO)
	$(BIN)/python -m benchmarks.zoo squeezenet $(DEMO)/squeezenet.onnx --seed 0
	$(BIN)/ansorpy compile $(DEMO)/squeezenet.onnx -o $(DEMO)/squeezenet.so --effort $(EFFORT) --db $(DEMO)/squeezenet.db
	$(BIN)/ansorpy verify $(DEMO)/squeezenet.so --model $(DEMO)/squeezenet.onnx --against onnxruntime
	$(BIN)/ansorpy bench $(DEMO)/squeezenet.so --model $(DEMO)/squeezenet.onnx --against onnxruntime openvino

# The tests start hundreds of processes: compiled modules are kept, whatever the shell prefers.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.with-cuda $(VENV)/.with-report
	$(BIN)/python -m pytest $(if $(filter-out 1,$(JOBS)),--numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder)

test-emulated: $(VENV)/.with-linker
	$(BIN)/python -m pytest tests/runtime/test_targets.py -m emulated --emulated -rs

test-torch: $(VENV)/.with-torch
	$(BIN)/python -m pytest tests/frontend/torch tests/torch_backend tests/cost tests/search
	$(BIN)/python -m pytest tests/test_doc_blocks.py -k torch

conformance: $(STAMP)
	$(BIN)/python -m tests.campaigns.conformance $(if $(filter-out auto,$(JOBS)),--jobs $(JOBS))

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.with-docs
	$(BIN)/mkdocs build --quiet

wheel-test: $(STAMP)
	$(BIN)/python -m tests.campaigns.installs

check: $(STAMP)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy

bench: $(VENV)/.with-bench $(VENV)/.with-torch
	mkdir -p build
	$(BIN)/python -m benchmarks.ops --json build/ops.json
	$(BIN)/python -m benchmarks.networks --json build/networks.json

# A network's records, another engine's times and its outputs make a report with every part.
screenshots: demo $(VENV)/.with-report
	@test -n "$(BROWSER)" || { echo "pictures of the report need chromium; on Debian: apt install chromium"; exit 5; }
	$(BIN)/ansorpy bench $(DEMO)/squeezenet.onnx --db $(DEMO)/squeezenet.db --against onnxruntime openvino --profile -o $(DEMO)/bench.json
	$(BIN)/ansorpy verify $(DEMO)/squeezenet.onnx --db $(DEMO)/squeezenet.db --json > $(DEMO)/verify.json
	$(BIN)/ansorpy report $(DEMO)/squeezenet.onnx --db $(DEMO)/squeezenet.db --html $(DEMO)/report.html --bench $(DEMO)/bench.json --verify $(DEMO)/verify.json
	$(SHOT) --window-size=1280,1240 --screenshot=docs/pictures/report.png file://$(abspath $(DEMO))/report.html
	$(SHOT) --window-size=390,1400 --screenshot=docs/pictures/report-phone.png file://$(abspath $(DEMO))/report.html
	$(SHOT) --window-size=1280,1240 --blink-settings=preferredColorScheme=0 --screenshot=docs/pictures/report-dark.png file://$(abspath $(DEMO))/report.html

gallery: $(VENV)/.with-gallery
	$(BIN)/python -m examples.notebooks

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
