"""Encoders of folders and of files, beside what `transformers` makes of each text alone in f64."""

from __future__ import annotations

import json
import re
from pathlib import Path

import gguf
import numpy as np
import pytest
import tract_gguf
from encoders import FIRST, KEPT, LENGTHS, MASK, PADDING, TYPES, tokens, write_encoder
from folders import safetensors, weights
from gguf import GGMLQuantizationType as Type

import tract_core as tract
from tract_core.errors import CorruptModel, InputError, ModelError, RunError, Unsupported

CASES = json.loads(KEPT.read_text())
BOUND = 4e-6
"""How far numbers are from those in f64, of the largest of them."""

RUNTIMES = ("reference", "cpu")


def given(model: tract.Model | tract.Runnable, rows: slice = slice(None), count: int = 14) -> list[np.ndarray]:
    arrays = {"tokens": tokens(), "mask": MASK, "types": TYPES}
    return [arrays[name][rows, :count] for name in model.input_names()]


def check(model: tract.Model, case: dict[str, object], runtime: str, bound: float = BOUND) -> None:
    """All texts side by side, then each alone; both give the vectors of all tokens, and the scores."""
    runnable = tract.runtime_for_name(runtime).prepare(model)
    wanted, scores = [np.array(one) for one in case["hidden"]], np.array(case["scores"])
    largest = max(np.abs(one).max() for one in wanted)
    sides = [(slice(None), 14), *((slice(row, row + 1), count) for row, count in enumerate(LENGTHS))]
    for rows, count in sides:
        hidden, *found = (one.to_numpy() for one in runnable.run(given(runnable, rows, count)))
        for row, own in zip(range(3)[rows], hidden, strict=True):
            assert np.abs(own[: LENGTHS[row], :FIRST] - wanted[row]).max() < bound * largest
        for one in found:
            assert np.abs(one - scores[rows]).max() < bound * max(np.abs(scores).max(), 1)


# --- folders ---


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_encoder(name, runtime, tmp_path) -> None:
    model = tract.load(write_encoder(tmp_path / "model", CASES[name]))
    assert [str(one) for one in (model.input_fact(0), model.input_fact(1))] == ["B,S,i64"] * 2
    assert model.output_names() == ["hidden", "scores"]
    check(model, CASES[name], runtime)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_to_the_host_and_attention_is_one_kernel(name, tmp_path) -> None:
    model = tract.load(write_encoder(tmp_path / "model", CASES[name]))
    shown = str(tract.runtime_for_name("cpu").prepare(model).explain())
    layers = 4 if name.startswith("modernbert") else 3
    assert f"by attention on cpu ({layers} groups)" in shown
    assert "host" not in shown


HEADS = re.compile(r"(classifier|pre_classifier|(bert|nomic_bert)\.pooler|head)\..*")


@pytest.mark.parametrize("name", CASES)
def test_encoders_without_a_head_and_as_they_were_trained(name, tmp_path) -> None:
    """Heads that guess tokens are left aside, and so is what pools for a head that is not there."""
    case = CASES[name]
    plain = {one: one for one in case["shapes"] if not HEADS.fullmatch(one)}
    pooled = {one: one for one in case["shapes"] if "pooler" in one}
    model = write_encoder(tmp_path / "plain", case, names=plain | pooled, architectures=["NoModel"])
    check(tract.load(model), case, "reference")
    bare = {one: re.sub(r"^[a-z_]*bert[a-z_]*\.|^roberta\.|^model\.", "", one) for one in plain}
    old = {one: re.sub("LayerNorm.weight", "LayerNorm.gamma", own) for one, own in bare.items()}
    old = {one: re.sub("LayerNorm.bias", "LayerNorm.beta", own) for one, own in old.items()}
    model = tract.load(write_encoder(tmp_path / "old", case, names=old, architectures=None))
    assert model.output_names() == ["hidden"]
    check(model, case, "reference")


OLD_NOMIC = {
    "nomic_bert.layers": "encoder.layers",
    "nomic_bert.": "",
    "embeddings.LayerNorm": "emb_ln",
    "self_attn.o_proj": "attn.out_proj",
    "post_attention_layernorm": "norm1",
    "post_mlp_layernorm": "norm2",
    "mlp.up_proj": "mlp.fc11",
    "mlp.gate_proj": "mlp.fc12",
    "mlp.down_proj": "mlp.fc2",
}


def old_nomic(shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """The weights under the names that they had before transformers had the network; one matrix for three products."""
    held = {}
    for name, shape in shapes.items():
        if HEADS.fullmatch(name) or re.search(r"self_attn\.[kv]_proj", name):
            continue
        parts = [name.replace("q_proj", f"{part}_proj") for part in "qkv"] if ".q_proj." in name else [name]
        called = name.replace("self_attn.q_proj", "attn.Wqkv")
        for own, other in OLD_NOMIC.items():
            called = called.replace(own, other)
        held[called] = np.concatenate([weights(one, shape) for one in parts])
    return held


def test_nomic_as_it_was_before_transformers_had_it(tmp_path) -> None:
    case = CASES["nomic_bert"]
    said = {"n_embd": 64, "n_inner": 96, "n_layer": 3, "n_head": 4, "n_positions": 128, "layer_norm_epsilon": 1e-12}
    said |= {"model_type": "nomic_bert", "activation_function": "swiglu", "rotary_emb_base": 1000}
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(said))
    (folder / "model.safetensors").write_bytes(safetensors(old_nomic(case["shapes"])))
    check(tract.load(folder), case, "cpu")


# --- files of GGUF ---

FILES = {"bert": "bert", "roberta": "bert", "xlm-roberta": "bert", "nomic_bert": "nomic-bert"}
FILES |= {"modernbert-mean": "modern-bert"}


def named(name: str) -> dict[str, np.ndarray]:
    """The weights as the package ``gguf`` names them, and the converter of llama.cpp where that differs."""
    if name == "nomic_bert":
        held = old_nomic(CASES[name]["shapes"])
    else:
        held = {own: weights(own, shape) for own, shape in CASES[name]["shapes"].items()}
    names, found = gguf.get_tensor_name_map(gguf.MODEL_ARCH[FILES[name].replace("-", "_").upper()], 4), {}
    for own, array in held.items():
        called = re.sub(r"^(bert|roberta|model)\.", "", own)
        called = re.sub(r"^classifier\.(weight|bias)", r"classifier.out_proj.\1", called)
        called = names.get_name(called.replace("pooler.dense", "classifier.dense"), try_suffixes=(".weight", ".bias"))
        found[called] = array
    if "roberta" in name:  # positions are counted from the padding on
        found["position_embd.weight"] = found["position_embd.weight"][PADDING + 1 :]
    return found


def write_file(path: Path, name: str, kind: Type = Type.F32, *, causal: bool = False) -> Path:
    architecture, config = FILES[name], CASES[name]["config"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"] - (PADDING + 1 if "roberta" in name else 0))
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_layer_norm_eps(config.get("layer_norm_eps", config.get("norm_eps")))
    writer.add_causal_attention(causal)
    writer.add_pooling_type(gguf.PoolingType.CLS)
    writer.add_token_type_count(config.get("type_vocab_size", 1))
    if architecture == "nomic-bert":
        writer.add_rope_freq_base(1000.0)
    if architecture == "modern-bert":
        writer.add_rope_freq_base(160000.0)
        writer.add_sliding_window(config["local_attention"])
    for called, array in named(name).items():
        if kind != Type.F32 and array.ndim == 2 and called != "position_embd.weight":
            writer.add_tensor(called, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(called, array)
    for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        finish()
    writer.close()
    return path


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_file(name, runtime, tmp_path) -> None:
    model = tract.load(write_file(tmp_path / "m.gguf", name))
    assert model.output_names() == (["hidden"] if name == "nomic_bert" else ["hidden", "scores"])
    check(model, CASES[name], runtime)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", ["Q8_0", "F16"])
@pytest.mark.parametrize("name", ["roberta", "modernbert-mean"])
def test_weights_stay_packed(name, kind, runtime, tmp_path) -> None:
    """Numbers are those of the same network with the numbers that the blocks stand for."""
    path = write_file(tmp_path / "m.gguf", name, Type[kind])
    model = tract.load(path)
    graph = model.typed
    matrices = sum(array.ndim == 2 for array in named(name).values()) - ("roberta" in name)
    assert [node.op.name for node in graph.live_nodes()].count("UnpackBlocks") >= matrices
    held = [node.outputs[0].fact.constant for node in graph.live_nodes() if node.op.name == "Const"]
    assert sum(one.nbytes for one in held if one is not None) < path.stat().st_size
    wide = {one.name: gguf.quants.dequantize(one.data, one.tensor_type) for one in gguf.GGUFReader(path).tensors}
    again = gguf.GGUFWriter(tmp_path / "wide.gguf", FILES[name])
    for key, field in gguf.GGUFReader(path).fields.items():
        if key.startswith(FILES[name]):
            again.add_key_value(key, field.contents(), field.types[0])
    for called, array in wide.items():
        again.add_tensor(called, array.astype(np.float32))
    for finish in (again.write_header_to_file, again.write_kv_data_to_file, again.write_tensors_to_file):
        finish()
    again.close()
    found, wanted = (
        [one.to_numpy() for one in runnable.run(given(runnable))]
        for runnable in map(tract.runtime_for_name(runtime).prepare, (model, tract.load(tmp_path / "wide.gguf")))
    )
    for one, other in zip(found, wanted, strict=True):
        assert np.abs(one - other).max() < 1e-5 * np.abs(other).max()


# --- what is wrong ---


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_texts_that_are_too_long_and_none(runtime, tmp_path) -> None:
    """Positions of RoBERTa are the rows of its matrix behind that of the padding."""
    folder = write_encoder(tmp_path / "model", CASES["roberta"])
    assert tract_gguf.read(folder).metadata["bert.context_length"] == 62
    runnable = tract.runtime_for_name(runtime).prepare(tract.load(folder))
    longest = np.full((1, 62), 5)
    assert np.isfinite(runnable.run([longest, np.ones_like(longest)])[0].to_numpy()).all()
    with pytest.raises(RunError, match="index 62 is outside"):
        runnable.run([np.full((1, 63), 5), np.ones((1, 63), np.int64)])
    none = np.zeros((0, 5), np.int64)
    assert [one.shape for one in runnable.run([none, none])] == [(0, 5, 64), (0, 1)]
    with pytest.raises(InputError, match="S"):
        runnable.run([none.reshape(5, 0)] * 2)


@pytest.mark.parametrize(
    ("name", "said", "wanted"),
    [
        ("bert", {"is_decoder": True}, "has is_decoder, which is not built"),
        ("bert", {"position_embedding_type": "relative_key"}, "positions that are not absolute"),
        ("bert", {"hidden_act": "silu"}, "function 'silu', wanted gelu or"),
        ("bert", {"architectures": ["BertForTokenClassification"]}, "'BertForTokenClassification'; read are those"),
        ("bert", {"architectures": ["BertModel"]}, r"nothing reads the weights classifier\."),
        ("bert", {"architectures": [3]}, "an encoder that is a 3"),
        ("bert", {"hidden_size": None}, r"nothing as bert\.embedding_length, wanted an integer"),
        ("bert", {"hidden_size": "64"}, "has '64' as hidden_size, wanted a number"),
        ("bert", {"hidden_size": 32}, "has shape"),
        ("bert", {"num_hidden_layers": 4}, r"there is no tensor 'blk\.3\.attn_"),
        ("bert", {"num_hidden_layers": 2}, r"nothing reads the weights blk\.2\."),
        ("bert", {"num_attention_heads": 0}, "wanted an integer from 1 to"),
        ("bert", {"num_attention_heads": 5}, "has shape"),
        ("bert", {"layer_norm_eps": 1e300}, r"layer_norm_epsilon is 1e\+300, wanted a number from 0 to 1"),
        ("roberta", {"pad_token_id": -1}, "has -1 as pad_token_id"),
        ("roberta", {"pad_token_id": 200}, "of which 201 rows are none"),
        ("nomic_bert", {"rope_parameters": {"rope_type": "yarn"}}, "scaled by 'yarn'"),
        ("nomic_bert", {"rope_parameters": [1]}, "as rope_parameters, wanted an object"),
        ("nomic_bert", {"rotary_emb_fraction": 0.5}, "a part of each head turns"),
        ("nomic_bert", {"rotary_emb_interleaved": True}, "has rotary_emb_interleaved"),
        ("modernbert", {"layer_types": ["full_attention"] * 2 + ["sliding_attention"] * 2}, "layers of the types"),
        ("modernbert", {"classifier_pooling": "max"}, "reads 'max' of a text, known are cls and mean"),
        ("modernbert", {"classifier_activation": "x"}, "function 'x', known are relu, gelu"),
        ("modernbert", {"layer_types": None, "global_attn_every_n_layers": "3"}, "as global_attn_every_n_layers"),
        ("modernbert", {"local_attention": 0}, "wanted an integer from 1 to"),
    ],
    ids=str,
)
def test_what_makes_no_encoder_is_said(name, said, wanted, tmp_path) -> None:
    folder = write_encoder(tmp_path / "model", CASES[name], **said)
    with pytest.raises(ModelError, match=wanted) as raised:
        tract.load(folder)
    assert str(folder) in str(raised.value)


def shaped(random: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The numbers of a tensor in another shape, or some of them."""
    others = [array.reshape(-1)[:1].reshape(()), array.reshape(-1), array[None], array[:0], array[1:], array.T.copy()]
    return others[random.integers(len(others))]


@pytest.mark.hostile
def test_tensors_of_any_shape_give_an_encoder_or_an_error_of_ours(tmp_path) -> None:
    random, read = np.random.default_rng(6), 0
    for number in range(120):
        name = [*CASES][number % len(CASES)]
        held = {own: weights(own, shape) for own, shape in CASES[name]["shapes"].items()}
        changed = [*held][random.integers(len(held))]
        held[changed] = shaped(random, held[changed])
        folder = write_encoder(tmp_path / str(number), CASES[name])
        (folder / "model.safetensors").write_bytes(safetensors(held))
        try:
            tract.load(folder)
            read += 1
        except ModelError:
            continue
    assert read < 60


def test_two_tensors_of_one_name(tmp_path) -> None:
    case = CASES["bert"]
    names = {one: one for one in case["shapes"]} | {"bert.embeddings.LayerNorm.bias": "embeddings.LayerNorm.gamma"}
    with pytest.raises(CorruptModel, match=r"two tensors that files call 'token_embd_norm\.weight'"):
        tract.load(write_encoder(tmp_path / "model", case, names=names))


def test_files_whose_tokens_see_what_is_before_them_alone(tmp_path) -> None:
    with pytest.raises(Unsupported, match="each token sees those before it alone"):
        tract.load(write_file(tmp_path / "m.gguf", "bert", causal=True))


def test_encoders_are_among_what_is_known(tmp_path) -> None:
    path = write_file(tmp_path / "m.gguf", "bert")
    path.write_bytes(
        path.read_bytes().replace(b"\x04\x00\x00\x00\x00\x00\x00\x00bert", b"\x04\x00\x00\x00\x00\x00\x00\x00barn")
    )
    with pytest.raises(Unsupported, match=r"architecture 'barn'; known are bert, .*modern-bert"):
        tract.load(path)
