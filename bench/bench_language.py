"""A language model of random weights beside llama.cpp: ``python bench/bench_language.py [--llama PYTHON]``

The network is of Llama's form: 8 layers of width 1024, 16 heads over 4, 107 million parameters. The package ``gguf``
writes it to ``bench/.models``. Each engine has a process of its own, with one thread unless ``--threads`` says more;
they take turns, a prompt of 128 tokens and 32 tokens one by one behind it in each round, so that what else the machine
does hits all alike. Printed are the medians of tokens a second, of the ratios within rounds, the most memory that each
took, and how far logits behind the prompt are from ours in floats, in their standard deviations.

``--llama`` names a Python that has ``llama-cpp-python``; where its library was built apart, LLAMA_CPP_LIB_PATH is its
folder. Without it, ours alone are measured: in floats, and with activations of 8 bits, which are what llama.cpp has.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

MODELS: Final = Path(__file__).parent / ".models"
LAYERS, WIDTH, INNER, HEADS, KEY_HEADS, VOCABULARY = 8, 1024, 2816, 16, 4, 8192
PROMPT, ANSWER = 128, 32

OURS: Final = """
import tract_core as tract
model = tract.load(path)
state = tract.runtime_for_name("cpu", threads=threads, **options).prepare(model).spawn_state()
def start():
    global past
    past = [np.zeros((1, heads, 0, size), "f4")] * (2 * layers)
def see(tokens):
    global past
    logits, *past = state.run([np.array([tokens]), *past])
    return np.asarray(logits)[0, -1]
"""
THEIRS: Final = """
import ctypes
import llama_cpp.llama_cpp as L
@L.llama_log_callback
def quiet(*_): pass
L.llama_log_set(quiet, None)
L.llama_backend_init()
model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
form = L.llama_context_default_params()
form.n_ctx, form.n_batch, form.n_threads, form.n_threads_batch = 2048, 2048, threads, threads
context = L.llama_init_from_model(model, form)
def start():
    L.llama_memory_clear(L.llama_get_memory(context), True)
def see(tokens):
    kept = (L.llama_token * len(tokens))(*tokens)
    assert L.llama_decode(context, L.llama_batch_get_one(kept, len(tokens))) == 0
    return np.ctypeslib.as_array(L.llama_get_logits_ith(context, -1), (vocabulary,)).copy()
"""
TURNS: Final = """
import json, resource, sys
from time import perf_counter
import numpy as np
path, threads, options, layers, heads, size, vocabulary, prompt, answer = json.loads(sys.argv[1])
{engine}
tokens = np.random.default_rng(1).integers(3, vocabulary, prompt + answer).tolist()
for line in sys.stdin:
    start()
    times = [perf_counter()]
    logits = see(tokens[:prompt])
    times.append(perf_counter())
    for token in tokens[prompt:]:
        see([token])
    times.append(perf_counter())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rates = prompt / (times[1] - times[0]), answer / (times[2] - times[1])
    print(json.dumps([*rates, memory, logits.tolist()]), flush=True)
"""


def network(weights: str) -> Path:
    """The file of the network, which is written where there is none."""
    path = MODELS / f"language-{weights}.gguf"
    if path.exists():
        return path
    MODELS.mkdir(exist_ok=True)
    kind, random = GGMLQuantizationType[weights.upper()], np.random.default_rng(0)
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("no_vocab")

    def put(name: str, *shape: int) -> None:
        numbers = random.standard_normal(shape, dtype=np.float32)
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", 1 + 0.1 * numbers)
        else:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(numbers * np.float32(0.05), kind), raw_dtype=kind)

    keys = KEY_HEADS * WIDTH // HEADS
    for name in ("token_embd", "output"):
        put(name, VOCABULARY, WIDTH)
    put("output_norm", WIDTH)
    for layer in range(LAYERS):
        sizes = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (keys, WIDTH)}
        sizes |= {"attn_v": (keys, WIDTH), "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH)}
        for name, shape in (sizes | {"ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}).items():
            put(f"blk.{layer}.{name}", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Engine:
    """A process that makes a round for each line that it gets."""

    def __init__(self, name: str, python: str, code: str, path: Path, threads: int, **options: Any) -> None:
        self.name, self.rounds = name, list[list[Any]]()
        given = [str(path), threads, options, LAYERS, KEY_HEADS, WIDTH // HEADS, VOCABULARY, PROMPT, ANSWER]
        command = [python, "-c", TURNS.replace("{engine}", code), json.dumps(given)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self) -> None:
        """One round."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with {self._process.wait()}")
        self.rounds.append(json.loads(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="q4_0", help="q4_0, q4_1, q5_0, q5_1, q8_0, f16, bf16 or f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--llama", help="a Python that has llama-cpp-python")
    asked = parser.parse_args()
    path = network(asked.weights)
    engines = [Engine("ours, floats", sys.executable, OURS, path, asked.threads)]
    engines.append(Engine("ours, 8 bits", sys.executable, OURS, path, asked.threads, bytes=True))
    if asked.llama:
        engines.append(Engine("llama.cpp", asked.llama, THEIRS, path, asked.threads))
    for _ in range(asked.rounds + 1):
        for engine in engines:
            engine.turn()
    exact, last = np.array(engines[0].rounds[0][3]), engines[-1]
    print(f"{path.name}, {asked.threads} threads; ratios are to {last.name}")
    print("engine        prompt  ratio  answer  ratio     MB  off by")
    for engine in engines:
        rounds = list(zip(engine.rounds[1:], last.rounds[1:], strict=True))
        figures = [statistics.median(one[what] for one, _ in rounds) for what in (0, 1)]
        ratios = [statistics.median(one[what] / other[what] for one, other in rounds) for what in (0, 1)]
        off = np.abs(np.array(engine.rounds[0][3]) - exact).max() / exact.std()
        print(
            f"{engine.name:12s} {figures[0]:7.1f} {ratios[0]:6.2f} {figures[1]:7.1f} {ratios[1]:6.2f}"
            f" {engine.rounds[-1][2]:6.0f} {off:7.3f}"
        )


if __name__ == "__main__":
    main()
