"""Folders of Hugging Face, beside what `transformers` makes of them; and folders that are wrong."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import tract_gguf
from folders import FIRST, KEPT, PLACES, TOKENS, safetensors, weights, write_folder
from quantised import mxfp4
from tract_gguf.folders.folder import read_folder
from tract_gguf.folders.safetensors import read_tensors

import tract_core as tract
from tract_core.data.stored import mapped_around
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, TractError, Unsupported
from tract_core.limits import LoadLimits

CASES = json.loads(KEPT.read_text())
BOUND = 1e-5
"""How far logits are from those in f64, of the largest of them."""


def logits_of(model: tract.Model, runtime: str = "reference") -> np.ndarray:
    """Those of some tokens at once, and of the others one by one, at the places that are kept."""
    graph = model.typed
    shapes = [graph.outlet_fact(outlet).shape for outlet in graph.inputs[1:]]
    past = [np.zeros((len(TOKENS), int(shape[1]), 0, int(shape[3])), np.float32) for shape in shapes]
    runnable = tract.runtime_for_name(runtime).prepare(model)
    found = []
    for first, last in [(0, 9), *((place, place + 1) for place in range(9, TOKENS.shape[1]))]:
        logits, *past = [one.to_numpy() for one in runnable.run([TOKENS[:, first:last], *past])]
        found.append(logits)
    return np.concatenate(found, 1)[:, list(PLACES), :FIRST]


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_network(name, tmp_path) -> None:
    folder = write_folder(tmp_path / "model", CASES[name])
    wanted = np.array(CASES[name]["logits"])
    assert np.abs(logits_of(tract.load(folder)) - wanted).max() < BOUND * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["llama", "qwen2_moe"])
def test_on_cpu_too(name, tmp_path) -> None:
    wanted = np.array(CASES[name]["logits"])
    found = logits_of(tract_gguf.load(write_folder(tmp_path / "model", CASES[name])), "cpu")
    assert np.abs(found - wanted).max() < BOUND * np.abs(wanted).max()


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_experts_in_mxfp4_are_those_of_the_numbers(runtime, tmp_path) -> None:
    """As gpt-oss is published: rows of blocks, where floats lie the other way round."""
    case = CASES["gpt_oss"]
    blocks, floats = dict[str, np.ndarray](), dict[str, np.ndarray]()
    for name, shape in case["shapes"].items():
        blocks[name] = floats[name] = weights(name, shape)
        if name.endswith(("up_proj", "down_proj")):
            turned = blocks.pop(name).swapaxes(1, 2)
            parts, numbers = mxfp4(name, turned.reshape(-1, shape[1]))
            blocks |= {own: array.reshape(*turned.shape[:2], *array.shape[1:]) for own, array in parts.items()}
            floats[name] = np.ascontiguousarray(numbers.reshape(turned.shape).swapaxes(1, 2).astype(np.float32))
    found = []
    for held, said in ((blocks, {"quantization_config": {"quant_method": "mxfp4"}}), (floats, {})):
        folder = tmp_path / str(len(held))
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(case["config"] | said))
        (folder / "model.safetensors").write_bytes(safetensors(held))
        found.append(logits_of(tract.load(folder), runtime))
    assert np.abs(found[0] - found[1]).max() < BOUND * np.abs(found[1]).max()


def test_weights_in_bf16_and_in_several_files(tmp_path) -> None:
    """Weights have eight bits: as far away as that rounds them."""
    folder = write_folder(tmp_path / "model", CASES["qwen2"], narrow=True, files=3)
    tensors = tract_gguf.read(folder).tensors
    assert {one.kind for one in tensors.values()} == {"bf16"}
    assert tract.load(folder / "model.safetensors.index.json").input_count() == 1 + 2 * 3
    stored = tensors["blk.1.ffn_up.weight"].stored()
    assert mapped_around(stored) is not None
    np.testing.assert_allclose(
        stored.astype(np.float32), weights("model.layers.1.mlp.up_proj.weight", stored.shape), rtol=2**-8
    )
    wanted = np.array(CASES["qwen2"]["logits"])
    error = np.abs(logits_of(tract.load(folder)) - wanted).max() / np.abs(wanted).max()
    assert 1e-4 < error < 0.1


def test_a_folder_of_links_as_in_the_cache(tmp_path) -> None:
    blobs = write_folder(tmp_path / "blobs", CASES["llama"])
    (tmp_path / "snapshot").mkdir()
    for name in ("config.json", "model.safetensors"):
        os.symlink(blobs / name, tmp_path / "snapshot" / name)
    assert read_folder(tmp_path / "snapshot").architecture == "llama-halves"


# --- what is wrong ---


def changed(tmp_path, case="llama", **said):
    """A folder whose configuration says something else; ``None`` takes it away."""
    config = {key: value for key, value in (CASES[case]["config"] | said).items() if value is not None}
    return write_folder(tmp_path / "model", CASES[case] | {"config": config})


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"model_type": "bart"}, "of the model type 'bart'; known are .*gemma, .*t5, .*whisper"),
        ({"model_type": None}, "of the model type None"),
        ({"quantization_config": {"quant_method": "hqq"}}, "quantised by the method 'hqq'; known are gptq, awq"),
        ({"hidden_act": "relu"}, "units are of the function 'relu', wanted silu"),
        ({"hidden_size": None}, r"nothing as llama-halves\.embedding_length, wanted an integer"),
        ({"hidden_size": "64"}, "has '64' as hidden_size, wanted a number"),
        ({"head_dim": 1.5}, "has 1.5 as head_dim"),
        ({"num_attention_heads": 0}, "wanted an integer from 1 to"),
        ({"layer_types": ["sliding_attention"] * 3}, "layers of the types"),
        ({"rope_parameters": [1]}, "as scaling of positions, wanted an object"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "which is not built; known are default"),
        ({"rope_parameters": {"rope_type": "linear"}}, "None as factor, wanted a number above 0"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "no lists of numbers as long_factor"),
        ({"tie_word_embeddings": True, "num_hidden_layers": 2}, r"nothing reads the weights blk\.2\."),
        ({"num_hidden_layers": 4}, r"there is no tensor 'blk\.3\.attn_norm\.weight'"),
        ({"attention_bias": True}, None),
    ],
    ids=str,
)
def test_what_makes_no_network_is_said(said, wanted, tmp_path) -> None:
    folder = changed(tmp_path, **said)
    if wanted is None:
        tract.load(folder)
        return
    with pytest.raises(ModelError, match=wanted) as raised:
        tract.load(folder)
    assert str(folder) in str(raised.value)


def test_logits_want_their_matrix(tmp_path) -> None:
    case = CASES["llama"] | {"shapes": {k: v for k, v in CASES["llama"]["shapes"].items() if k != "lm_head.weight"}}
    with pytest.raises(CorruptModel, match="a matrix of their own, and there is none"):
        tract.load(write_folder(tmp_path / "model", case))


def test_files_of_the_folder_alone_are_read(tmp_path) -> None:
    folder = write_folder(tmp_path / "model", CASES["llama"], files=2)
    for place in ("../outside.safetensors", "/etc/passwd", "missing.safetensors"):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": place}}))
        with pytest.raises(ModelError, match=r"safetensors|passwd"):
            tract.load(folder)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": [1]}')
    with pytest.raises(CorruptModel, match="no object of names of files"):
        tract.load(folder)


def header(text: str) -> bytes:
    return len(text).to_bytes(8, "little") + text.encode()


def one(**said: object) -> bytes:
    return header(json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | said})) + bytes(8)


WRONG = {
    "short": (b"abc", CorruptModel, "it has 3 bytes"),
    "length": ((1 << 63).to_bytes(8, "little") + b"{}", CorruptModel, "its header is to have"),
    "json": (header("{"), CorruptModel, "the header is no JSON"),
    "deep": (header("[" * 100_000), CorruptModel, "the header is no JSON"),
    "list": (header("[]"), CorruptModel, "a list, wanted an object"),
    "said": (one(shape=None), CorruptModel, "wanted dtype, shape and data_offsets"),
    "negative": (one(shape=[-2]), CorruptModel, "wanted dtype, shape and data_offsets"),
    "boolean": (one(shape=[True]), CorruptModel, "wanted dtype, shape and data_offsets"),
    "kind": (one(dtype="X"), CorruptModel, "of type 'X'"),
    "other": (one(dtype="F8_E5M2"), Unsupported, "of type 'F8_E5M2'; known are"),
    "ends": (one(data_offsets=[8, 0]), CorruptModel, "it lies from 8 to 0"),
    "outside": (one(data_offsets=[0, 1 << 70]), CorruptModel, "the file has 8 bytes of data"),
    "size": (one(shape=[3]), CorruptModel, r"its shape \[3\] takes 12"),
    "huge": (one(shape=[1 << 40, 1 << 40]), LimitExceeded, "more elements than memory"),
}


@pytest.mark.hostile
@pytest.mark.parametrize("name", WRONG)
def test_files_that_are_wrong(name) -> None:
    content, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        read_tensors(content, LoadLimits())


@pytest.mark.hostile
def test_bytes_that_changed_give_tensors_or_an_error_of_ours() -> None:
    random = np.random.default_rng(2)
    content = safetensors({"a": np.ones((2, 3), np.float32), "b": np.ones(4, np.float16), "c": np.ones(0, np.int64)})
    assert {name: one.shape for name, one in read_tensors(content, LoadLimits()).items()} == {
        "a": (2, 3),
        "b": (4,),
        "c": (0,),
    }
    for _ in range(500):
        other = bytearray(content)
        for place in random.integers(0, len(content), 2):
            other[place] = random.integers(0, 256)
        try:
            read_tensors(bytes(other[: random.integers(1, len(content) + 1)]), LoadLimits())
        except TractError:
            continue
