"""A language model of random weights beside llama.cpp: ``python bench/bench_language.py [--llama PYTHON]``

The network is of Llama's form: 8 layers of width 1024, 16 heads over 4, 107 million parameters; ``--large``: 16 layers
of width 2048, 32 heads over 8, 1.1 billion. The package ``gguf`` writes it to ``bench/.models``. Each engine has a
process of its own, with one thread unless ``--threads`` says more; they take turns, a prompt of 128 tokens and 32
tokens one by one behind it in each round, so that what else the machine does hits all alike. ``--prompt`` says how long
the prompt is, ``--texts`` how many texts with that prompt go on side by side. Printed are the medians of tokens a
second, of all texts together, of the ratios within rounds, the most memory that each took, and how far logits behind
the prompt are from ours in floats, in their standard deviations.

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
from typing import Any, Final, NamedTuple

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

MODELS: Final = Path(__file__).parent / ".models"
ANSWER: Final = 32


class Sizes(NamedTuple):
    """Of a network."""

    layers: int
    width: int
    inner: int
    heads: int
    key_heads: int
    vocabulary: int


SMALL: Final = Sizes(8, 1024, 2816, 16, 4, 8192)
LARGE: Final = Sizes(16, 2048, 8192, 32, 8, 32000)

OURS: Final = """
import tract_core as tract
from tract_transformers.language_model.keep import description_of, keep_past
from tract_transformers.language_model.paged import PagedTexts, TextPart
model = tract.load(path)
keep_past(model, "f16" if options else "f32")
runnable = tract.runtime_for_name("cpu", threads=threads, **options).prepare(model)
pasts = PagedTexts(runnable, description_of(runnable), remembered=0)
def start():
    global texts
    texts = [pasts.text()]
def see(tokens):
    if len(tokens) == 1:
        return pasts.extend([TextPart(text, tokens) for text in texts])[0][-1]
    for first in range(0, len(tokens), 512):
        logits = pasts.extend([TextPart(texts[0], tokens[first : first + 512])])[0][-1]
    texts[1:] = [pasts.fork(texts[0]) for _ in range(count - 1)]
    return logits
def end():
    for text in texts:
        pasts.truncate(text, 0)
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
form.n_ctx, form.n_batch, form.n_seq_max = 2048 * count, 2048, count
form.n_threads, form.n_threads_batch, form.kv_unified = threads, threads, True
context = L.llama_init_from_model(model, form)
batch = L.llama_batch_init(2048, 0, count)
def start():
    global seen
    seen = 0
    L.llama_memory_clear(L.llama_get_memory(context), True)
def see(tokens):
    global seen
    texts = [[text] for text in range(count)] if len(tokens) == 1 else [[*range(count)]]
    batch.n_tokens = 0
    for text in texts:
        for place, token in enumerate(tokens):
            at = batch.n_tokens
            batch.token[at], batch.pos[at], batch.n_seq_id[at] = token, seen + place, len(text)
            for n, one in enumerate(text):
                batch.seq_id[at][n] = one
            batch.logits[at] = place == len(tokens) - 1
            batch.n_tokens += 1
    assert L.llama_decode(context, batch) == 0
    seen += len(tokens)
    return np.ctypeslib.as_array(L.llama_get_logits_ith(context, -1), (vocabulary,)).copy()
def end():
    pass
"""
TURNS: Final = """
import json, resource, sys
from time import perf_counter
import numpy as np
path, threads, options, vocabulary, prompt, answer, count = json.loads(sys.argv[1])
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
    end()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rates = prompt / (times[1] - times[0]), count * answer / (times[2] - times[1])
    print(json.dumps([*rates, memory, logits.tolist()]), flush=True)
"""


def network(weights: str, sizes: Sizes) -> Path:
    """The file of the network, which is written where there is none."""
    layers, width, inner, heads, key_heads, vocabulary = sizes
    path = MODELS / f"language-{width}-{weights}.gguf"
    if path.exists():
        return path
    MODELS.mkdir(exist_ok=True)
    kind, random = GGMLQuantizationType[weights.upper()], np.random.default_rng(0)
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(2048)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("no_vocab")

    def put(name: str, *shape: int) -> None:
        numbers = random.standard_normal(shape, dtype=np.float32)
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", 1 + 0.1 * numbers)
        else:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(numbers * np.float32(0.05), kind), raw_dtype=kind)

    keys = key_heads * width // heads
    for name in ("token_embd", "output"):
        put(name, vocabulary, width)
    put("output_norm", width)
    for layer in range(layers):
        shapes = {"attn_norm": (width,), "ffn_norm": (width,), "attn_q": (width, width), "attn_k": (keys, width)}
        shapes |= {"attn_v": (keys, width), "attn_output": (width, width), "ffn_gate": (inner, width)}
        for name, shape in (shapes | {"ffn_up": (inner, width), "ffn_down": (width, inner)}).items():
            put(f"blk.{layer}.{name}", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Engine:
    """A process that makes a round for each line that it gets."""

    def __init__(self, name: str, python: str, code: str, given: list[Any]) -> None:
        """``given``: the path, threads, options, the vocabulary, and how many tokens and texts there are."""
        self.name, self.rounds = name, list[list[Any]]()
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
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt")
    parser.add_argument("--texts", type=int, default=1, help="texts that go on side by side")
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    sizes = LARGE if asked.large else SMALL
    path = network(asked.weights, sizes)
    rest = [sizes.vocabulary, asked.prompt, ANSWER, asked.texts]
    ways: list[tuple[str, str, str, dict[str, bool]]] = [
        ("ours, floats", sys.executable, OURS, {}),
        ("ours, 8 bits", sys.executable, OURS, {"bytes": True}),
    ]
    if asked.llama:
        ways.append(("llama.cpp", asked.llama, THEIRS, {}))
    engines = [
        Engine(name, python, code, [str(path), asked.threads, options, *rest]) for name, python, code, options in ways
    ]
    for _ in range(asked.rounds + 1):
        for engine in engines:
            engine.turn()
    exact, last = np.array(engines[0].rounds[0][3]), engines[-1]
    about = f"{asked.threads} threads, {asked.texts} texts, a prompt of {asked.prompt}"
    print(f"{path.name}, {about}; ratios are to {last.name}")
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
