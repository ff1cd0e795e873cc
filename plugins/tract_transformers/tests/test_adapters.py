"""Low-rank adapters beside the products of a network: as if they had been added to its weights, in f64."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tract_transformers
from click.testing import CliRunner
from model_files import NETWORK, folder_with_model, gguf_with_model
from tiny_llama import EPSILON, TinyLlama
from tract_transformers.generation.adapters import AddAdapters, LowRank
from tract_transformers.generation.loading import add_adapters, load_model
from tract_transformers.generation.reading import read_prompt
from vocabularies import trained_bytes

from tract_core.cli.frame import app
from tract_core.errors import CorruptModel, InputError, ModelError, TractError, Unsupported

Array = np.ndarray[Any, Any]

MODULES = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj"}
MODULES |= {name: f"mlp.{name}_proj" for name in ("gate", "up", "down")}
TENSORS = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output"}
TENSORS |= {name: f"ffn_{name}" for name in ("gate", "up", "down")}
TOKENS = [5, 9, 200, 3, 77, 9, 8]


def drawn(
    rank: int = 3, seed: int = 0, parts: str = "q.0 k.0 v.1 o.1 gate.0 up.1 down.1 head"
) -> dict[str, tuple[Array, Array]]:
    """Both matrices for some weights of the network."""
    draw = np.random.default_rng(seed)
    found = {}
    for name in parts.split():
        rows, columns = NETWORK.weights[name].shape
        a = draw.normal(size=(rank, columns)) / sqrt(columns)
        found[name] = a.astype(np.float32), draw.normal(size=(rows, rank)).astype(np.float32)
    return found


def merged(*several: tuple[float, dict[str, tuple[Array, Array]]]) -> TinyLlama:
    """The network with what adapters say in its weights, and no norm behind its last layer but the plain one."""
    found = TinyLlama(vocabulary=NETWORK.vocabulary, seed=3)
    found.weights = {name: one.astype(np.float64) for name, one in NETWORK.weights.items()}
    for scale, pairs in several:
        for name, (a, b) in pairs.items():
            found.weights[name] += scale * b.astype(np.float64) @ a.astype(np.float64)
    return found


def peft(folder: Path, pairs: dict[str, tuple[Array, Array]], **config: Any) -> Path:
    """A folder as PEFT writes it; the file of tensors is written by its own description."""
    folder.mkdir(exist_ok=True)
    said = {"peft_type": "LORA", "r": 3, "lora_alpha": 6, "bias": "none", "modules_to_save": None, **config}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, pair in pairs.items():
        part, _, layer = name.partition(".")
        module = f"model.layers.{layer}.{MODULES[part]}" if layer else "lm_head"
        for letter, array in zip("AB", pair, strict=True):
            ends = [len(content), len(content) + array.nbytes]
            entry = {"dtype": "F32", "shape": array.shape, "data_offsets": ends}
            header[f"base_model.model.{module}.lora_{letter}.weight"] = entry
            content += array.tobytes()
    write(folder / "adapter_model.safetensors", header, content)
    return folder


def write(path: Path, header: dict[str, Any], content: bytes) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def folder_of_llama(folder: Path) -> Path:
    """The network as the package ``transformers`` keeps it."""
    config = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": EPSILON}
    config |= {"rope_theta": 10000.0, "vocab_size": NETWORK.vocabulary, "hidden_act": "silu"}
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 128}))
    trained_bytes().save(str(folder / "tokenizer.json"))
    names = {**MODULES, "before": "input_layernorm", "behind": "post_attention_layernorm"}
    header: dict[str, Any] = {}
    content = b""
    weights = {"embedding": "model.embed_tokens", "head": "lm_head", "norm": "model.norm"}
    for name, array in {**NETWORK.weights, "norm": np.ones(32, np.float32)}.items():
        part, _, layer = name.partition(".")
        module = f"model.layers.{layer}.{names[part]}" if layer else weights[name]
        ends = [len(content), len(content) + array.nbytes]
        header[f"{module}.weight"] = {"dtype": "F32", "shape": array.shape, "data_offsets": ends}
        content += array.tobytes()
    write(folder / "model.safetensors", header, content)
    return folder


def turned(array: Array, heads: int) -> Array:
    """Rows as files of GGUF have them for Llama: what turns together is side by side."""
    return array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)


def gguf_adapter(path: Path, pairs: dict[str, tuple[Array, Array]], alpha: float) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, (a, b) in pairs.items():
        part, _, layer = name.partition(".")
        heads = {"q": NETWORK.heads * NETWORK.groups, "k": NETWORK.heads}.get(part)
        tensor = f"blk.{layer}.{TENSORS[part]}" if layer else "output"
        writer.add_tensor(f"{tensor}.weight.lora_a", a)
        writer.add_tensor(f"{tensor}.weight.lora_b", np.ascontiguousarray(b if heads is None else turned(b, heads)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gguf_with_model(tmp_path_factory.mktemp("model") / "model.gguf")


def assert_is(network: TinyLlama, path: Path, adapters: Any) -> None:
    model = tract_transformers.load(path, "cpu", adapters=adapters)
    found = read_prompt(model.past(), TOKENS)
    exact = network.logits(TOKENS)[-1]
    assert np.abs(found - exact).max() < 2e-5 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("config", "scale"), [({}, 2.0), ({"use_rslora": True}, 6 / sqrt(3)), ({"lora_alpha": 1}, 1 / 3)]
)
def test_a_folder_of_peft(path: Path, tmp_path: Path, config: dict[str, Any], scale: float) -> None:
    pairs = drawn()
    assert np.abs(merged((scale, pairs)).logits(TOKENS) - NETWORK.logits(TOKENS)).max() > 1
    assert_is(merged((scale, pairs)), path, [peft(tmp_path / "peft", pairs, **config)])


def test_a_file_of_gguf_and_several_at_once(path: Path, tmp_path: Path) -> None:
    first, second = drawn(4, 1), drawn(1, 2, "q.0 k.1 down.0 gate.0")
    one = gguf_adapter(tmp_path / "one.gguf", first, 8.0)
    assert_is(merged((2.0, first)), path, one)
    two = peft(tmp_path / "two", second, lora_alpha=3)
    assert_is(merged((1.0, first), (-1.5, second)), path, [(one, 0.5), (two, -0.5)])
    assert_is(merged(), path, [(one, 0)])
    assert_is(merged(), path, [])


def test_a_folder_of_transformers(tmp_path: Path) -> None:
    """There, rows are as PEFT has them."""
    pairs = drawn()
    assert_is(merged((2.0, pairs)), folder_of_llama(tmp_path), [peft(tmp_path / "peft", pairs)])


def test_the_command(path: Path, tmp_path: Path) -> None:
    pairs = drawn(2, 3)
    adapter = gguf_adapter(tmp_path / "one.gguf", pairs, 2.0)
    line = [path, "generate", "--prompt", "the quick fox", "-n", 6, "--temperature", 0, "--json", "--adapter", adapter]
    result = CliRunner().invoke(app, list(map(str, line)))
    prompt = tract_transformers.load(path).prompt_tokens("the quick fox")
    assert json.loads(result.stdout)["tokens"] == merged((1.0, pairs)).greedy(prompt, 6)


def test_writing_with_an_adapter(path: Path, tmp_path: Path) -> None:
    pairs = drawn(2, 3)
    model = tract_transformers.load(path, adapters=[gguf_adapter(tmp_path / "one.gguf", pairs, 2.0)])
    prompt = model.prompt_tokens("the quick fox")
    answer = model.generate("the quick fox", max_tokens=6, temperature=0)
    assert list(answer.tokens) == merged((1.0, pairs)).greedy(prompt, 6)
    assert list(answer.tokens) != NETWORK.greedy(prompt, 6)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"peft_type": "IA3"}, "an adapter of type 'IA3', wanted LORA"),
        ({"use_dora": True}, "its use_dora is not understood"),
        ({"alpha_pattern": {"q": 3}}, "its alpha_pattern is not understood"),
        ({"bias": "all"}, "its bias is not understood"),
        ({"lora_alpha": None}, "its alpha is None, wanted a number"),
        ({"lora_alpha": True}, "its alpha is True, wanted a number"),
    ],
)
def test_adapters_that_are_more_than_that(path: Path, tmp_path: Path, config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        add_adapters(load_model(path), [peft(tmp_path / "peft", drawn(), **config)], path)


def test_adapters_that_do_not_fit(path: Path, tmp_path: Path) -> None:
    model = load_model(path)
    a, b = drawn(parts="q.0")["q.0"]
    for pair, problem in (
        ((a[:, :5], b), r"the adapter of 'blk.0.attn_q' is \[32, 3\] times \[3, 5\], for weights \[32, 32\]"),
        ((a[:2], b), "has no two matrices"),
        ((a[0], b), "has no two matrices"),
        ((a[:0], b[:, :0]), "has no two matrices"),
    ):
        with pytest.raises(CorruptModel, match=problem):
            add_adapters(
                model, [peft(tmp_path / "peft", {"q.0": tuple(np.ascontiguousarray(one) for one in pair)})], path
            )
    odd = np.ones((30, 3), np.float32)
    with pytest.raises(TractError, match="has 30 outputs, for 4 heads"):
        add_adapters(model, [peft(tmp_path / "peft", {"q.0": (a, odd)})], path)
    with pytest.raises(Unsupported, match=r"the adapter changes blk\.7\.attn_q, and the model has no such product"):
        add_adapters(model, [peft(tmp_path / "peft", {"q.7": (a, b)})], path)
    with pytest.raises(Unsupported, match="has no such product"):
        AddAdapters((LowRank("nothing", a, b),)).apply(model.typed)


def test_files_that_are_no_adapters(path: Path, tmp_path: Path) -> None:
    model = load_model(path)
    with pytest.raises(Unsupported, match="it is no adapter of type lora"):
        add_adapters(model, [path], path)
    with pytest.raises(ModelError, match=r"adapter_config\.json cannot be read"):
        add_adapters(model, [tmp_path], path)
    folder = peft(tmp_path / "peft", drawn())
    (folder / "adapter_model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(CorruptModel, match="its header is to have"):
        add_adapters(model, [folder], path)
    for config in (b"[" * 100_000, b"[]", b"\xff"):
        (folder / "adapter_config.json").write_bytes(config)
        with pytest.raises(ModelError):
            add_adapters(model, [folder], path)
    with pytest.raises(ModelError):
        add_adapters(model, [tmp_path / "nothing"], path)
    for strange in ([3], [(path, "much")], [(folder, float("nan"))]):
        with pytest.raises(InputError):
            add_adapters(model, strange, path)


def test_peft_needs_a_model_whose_rows_are_known(tmp_path: Path) -> None:
    path = folder_with_model(tmp_path)
    with pytest.raises(Unsupported, match="adapters of PEFT are for files of GGUF"):
        add_adapters(load_model(path), [peft(tmp_path / "peft", drawn())], path)
