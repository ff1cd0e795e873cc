"""Networks of an encoder and a decoder: what folders and files say of them, and what they may not say.

That they compute what `transformers` computes is tested in `tract_transformers`.
"""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tract_gguf
from folders import safetensors, weights
from gguf import GGMLQuantizationType as Type
from tract_gguf.builders.t5 import buckets

import tract_core as tract
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, Unsupported
from tract_core.limits import LoadLimits

T5: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 64,
    "num_layers": 1,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "vocab_size": 96,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}
WHISPER: dict[str, Any] = {
    "model_type": "whisper",
    "d_model": 32,
    "num_mel_bins": 8,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 64,
    "max_source_positions": 20,
    "max_target_positions": 16,
    "vocab_size": 96,
}


def shapes_of_t5(config: dict[str, Any] = T5) -> dict[str, tuple[int, ...]]:
    width, inner, units = 32, 64, 64
    found: dict[str, tuple[int, ...]] = {"shared.weight": (96, width), "lm_head.weight": (96, width)}
    for half, count in (("encoder", config["num_layers"]), ("decoder", config["num_decoder_layers"])):
        found[f"{half}.final_layer_norm.weight"] = (width,)
        for number in range(count):
            parts = ["SelfAttention"] if half == "encoder" else ["SelfAttention", "EncDecAttention"]
            for place, part in enumerate([*parts, "DenseReluDense"]):
                front = f"{half}.block.{number}.layer.{place}"
                found[f"{front}.layer_norm.weight"] = (width,)
                if part != "DenseReluDense":
                    found |= {f"{front}.{part}.{one}.weight": (inner, width) for one in "qkv"}
                    found[f"{front}.{part}.o.weight"] = (width, inner)
                else:
                    found |= {f"{front}.{part}.{one}.weight": (units, width) for one in ("wi_0", "wi_1")}
                    found[f"{front}.{part}.wo.weight"] = (width, units)
        found[f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = (32, 4)
    return found


def shapes_of_whisper() -> dict[str, tuple[int, ...]]:
    width = 32
    found: dict[str, tuple[int, ...]] = {
        "model.encoder.conv1.weight": (width, 8, 3),
        "model.encoder.conv2.weight": (width, width, 3),
        "model.encoder.embed_positions.weight": (20, width),
        "model.decoder.embed_positions.weight": (16, width),
        "model.decoder.embed_tokens.weight": (96, width),
    }
    found |= {f"model.encoder.conv{n}.bias": (width,) for n in (1, 2)}
    norms = ["model.encoder.layer_norm", "model.decoder.layer_norm"]
    for half, count, units in (("encoder", 1, 48), ("decoder", 2, 64)):
        for number in range(count):
            front = f"model.{half}.layers.{number}"
            parts = ["self_attn"] if half == "encoder" else ["self_attn", "encoder_attn"]
            norms += [f"{front}.{part}_layer_norm" for part in parts] + [f"{front}.final_layer_norm"]
            for part in parts:
                found |= {f"{front}.{part}.{one}.weight": (width, width) for one in PROJECTIONS}
                found |= {f"{front}.{part}.{one}.bias": (width,) for one in PROJECTIONS if one != "k_proj"}
            found |= {f"{front}.fc1.weight": (units, width), f"{front}.fc1.bias": (units,)}
            found |= {f"{front}.fc2.weight": (width, units), f"{front}.fc2.bias": (width,)}
    return found | {f"{name}.{part}": (width,) for name in norms for part in ("weight", "bias")}


PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def write(folder: Path, config: dict[str, Any], shapes: dict[str, tuple[int, ...]] | None = None) -> Path:
    folder.mkdir()
    if shapes is None:
        shapes = shapes_of_whisper() if config.get("model_type") == "whisper" else shapes_of_t5()
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    held = {name: weights(name, shape) for name, shape in shapes.items()}
    (folder / "model.safetensors").write_bytes(safetensors(held))
    return folder


def logits(path: Path, read: np.ndarray, tokens: np.ndarray, runtime: str = "reference") -> np.ndarray:
    """Of a decoder that sees all its tokens at once."""
    encoder, decoder = (one.into_runnable(runtime) for one in tract_gguf.load_halves(path))
    across = dict(zip(encoder.output_names(), encoder.run([read]), strict=True))
    given: dict[str, Any] = {"tokens": tokens}
    for name in decoder.input_names()[1:]:
        shape = decoder.input_fact(name).typed.shape
        given[name] = across.get(name, np.zeros((len(tokens), int(shape[1]), 0, int(shape[3])), np.float32))
    return decoder.run(given)[0].to_numpy()


# --- what models have ---


def test_inputs_and_outputs_of_both_halves(tmp_path: Path) -> None:
    encoder, decoder = tract_gguf.load_halves(write(tmp_path / "t5", T5))
    said = [{name: str(fact(name)) for name in names()} for names, fact in sides(encoder)]
    assert said == [
        {"tokens": "B,S,i64"},
        {"encoded": "B,S,32,f32"} | {f"cross.{n}.{part}": "B,4,S,16,f32" for n in (0, 1) for part in ("key", "value")},
    ]
    said = [{name: str(fact(name)) for name in names()} for names, fact in sides(decoder)]
    past = {f"past.{n}.{part}": "B,4,P,16,f32" for n in (0, 1) for part in ("key", "value")}
    across = {f"cross.{n}.{part}": "B,4,L,16,f32" for n in (0, 1) for part in ("key", "value")}
    assert said[0] == {"tokens": "B,S,i64"} | past | across
    assert said[1]["logits"] == "B,S,96,f32"
    encoder, decoder = tract_gguf.load_halves(write(tmp_path / "whisper", WHISPER))
    assert str(encoder.input_fact("features")) == "B,8,40,f32"
    assert str(encoder.output_fact("cross.1.key")) == "B,2,20,16,f32"  # heads of the decoder
    assert str(decoder.input_fact("past.0.key")) == "B,2,P,16,f32"


def sides(model: tract.Model) -> Any:
    return [(model.input_names, model.input_fact), (model.output_names, model.output_fact)]


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize(("length", "count"), [(1, 1), (2, 1), (200, 3)])
def test_texts_of_a_batch_are_those_alone(runtime: str, length: int, count: int, tmp_path: Path) -> None:
    folder, random = write(tmp_path / "t5", T5), np.random.default_rng(1)
    read, tokens = random.integers(0, 96, (2, length)), random.integers(0, 96, (2, count))
    both = logits(folder, read, tokens, runtime)
    alone = [logits(folder, read[n : n + 1], tokens[n : n + 1], runtime) for n in range(2)]
    np.testing.assert_allclose(both, np.concatenate(alone), atol=2e-5 * np.abs(both).max())


def test_an_encoder_alone_is_one_model(tmp_path: Path) -> None:
    shapes = {name: shape for name, shape in shapes_of_t5().items() if "decoder" not in name and "lm_head" not in name}
    folder = write(tmp_path / "encoder", T5, shapes)
    model = tract.load(folder)
    assert list(model.output_names()) == ["encoded"]
    whole, _ = tract_gguf.load_halves(write(tmp_path / "whole", T5))
    read = np.array([[5, 9, 1]])
    found, wanted = (one.into_runnable("reference").run([read])[0].to_numpy() for one in (model, whole))
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(Unsupported, match="the file holds an encoder alone"):
        tract_gguf.load_halves(folder)


def test_others_have_no_halves(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="two models"):
        tract.load(write(tmp_path / "t5", T5))
    folder = tmp_path / "llama"
    folder.mkdir()
    config = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1}
    (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    (folder / "model.safetensors").write_bytes(safetensors({}))
    with pytest.raises(Unsupported, match="'llama-halves' has no encoder with a decoder") as raised:
        tract_gguf.load_halves(folder)
    assert str(folder) in str(raised.value)


def test_scaled_logits_and_a_head_of_its_own(tmp_path: Path) -> None:
    """T5 1.0 reads logits from the matrix of tokens, scaled; what was saved since then says it by another name."""
    read, tokens = np.array([[5, 9, 1]]), np.array([[0, 7]])
    tied = {name: shape for name, shape in shapes_of_t5().items() if name != "lm_head.weight"}
    said = {
        "old": T5 | {"tie_word_embeddings": True},
        "unsaid": T5 | {"tie_word_embeddings": None},
        "new": T5 | {"scale_decoder_outputs": True, "tie_word_embeddings": True},
        "plain": T5 | {"scale_decoder_outputs": False, "tie_word_embeddings": True},
        "mt5": T5 | {"model_type": "mt5", "tie_word_embeddings": True},
    }
    found = {name: logits(write(tmp_path / name, one, tied), read, tokens) for name, one in said.items()}
    np.testing.assert_array_equal(found["old"], found["new"])
    np.testing.assert_array_equal(found["old"], found["unsaid"])
    np.testing.assert_array_equal(found["plain"], found["mt5"])
    np.testing.assert_allclose(found["old"] * np.sqrt(32), found["plain"], rtol=1e-5, atol=1e-6)
    own = logits(write(tmp_path / "own", T5), read, tokens)
    assert np.abs(own - found["plain"]).max() > 0.1


def test_whisper_has_a_head_of_its_own_where_that_is_said(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    heard, tokens = random.standard_normal((1, 8, 40)).astype(np.float32), np.array([[3, 7]])
    more = shapes_of_whisper() | {"proj_out.weight": (96, 32)}
    wanted = logits(write(tmp_path / "plain", WHISPER), heard, tokens)
    np.testing.assert_array_equal(logits(write(tmp_path / "tied", WHISPER, more), heard, tokens), wanted)
    own = logits(write(tmp_path / "own", WHISPER | {"tie_word_embeddings": False}, more), heard, tokens)
    assert np.abs(own - wanted).max() > 0.1


# --- files ---

NAMES = {"SelfAttention": "attn", "EncDecAttention": "cross_attn"}


def write_gguf(path: Path, kind: Type = Type.F32, *, encoder_alone: bool = False) -> Path:
    """The same network as llama.cpp has it."""
    architecture = "t5encoder" if encoder_alone else "t5"
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in (
        ("context_length", 512),
        ("embedding_length", 32),
        ("feed_forward_length", 64),
        ("block_count", 1),
        ("attention.head_count", 4),
        ("attention.key_length", 16),
        ("attention.value_length", 16),
        ("attention.relative_buckets_count", 32),
    ):
        writer.add_uint32(f"{architecture}.{name}", value)
    writer.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-6)
    if not encoder_alone:
        writer.add_uint32("t5.decoder_block_count", 2)
        writer.add_uint32("t5.decoder_start_token_id", 0)
    for name, shape in shapes_of_t5().items():
        called, array = called_in_files(name), weights(name, shape)
        if encoder_alone and ("dec." in called or called == "output.weight"):
            continue
        if len(shape) > 1 and "rel_b" not in called and kind is not Type.F32:
            writer.add_tensor(called, gguf.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(called, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def called_in_files(name: str) -> str:
    """By the table of the package ``gguf``, which knows the names of `transformers`."""
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5, 2)
    found = table.get_name(name.removesuffix(".weight"))
    assert found is not None
    return f"{found}.weight"


def test_files_are_as_folders(tmp_path: Path) -> None:
    read, tokens = np.arange(2, 42)[None], np.array([[0, 7, 9]])
    wanted = logits(write(tmp_path / "t5", T5), read, tokens)
    found = logits(write_gguf(tmp_path / "t5.gguf"), read, tokens)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-6)  # weights lie otherwise, and NumPy sums by that
    blocks = write_gguf(tmp_path / "blocks.gguf", Type.Q8_0)
    for runtime in ("reference", "cpu"):
        found = logits(blocks, read, tokens, runtime)
        assert 1e-5 < np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()
    model = tract.load(write_gguf(tmp_path / "encoder.gguf", encoder_alone=True))
    assert list(model.output_names()) == ["encoded"]


# --- how far keys are ---


@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (8, 20), (4, 3), (64, 1000), (6, 7)])
@pytest.mark.parametrize("both_ways", [True, False])
def test_buckets_of_distances(count: int, farthest: int, both_ways: bool) -> None:
    """By the words of the paper and of its code, one number after the other; edges are where f32 has them."""
    found = buckets(count, farthest, both_ways=both_ways)
    assert len(found) == 2 * farthest + 1
    for distance, bucket in zip(range(-farthest, farthest + 1), found, strict=True):
        own, start = (count // 2, (distance > 0) * (count // 2)) if both_ways else (count, 0)
        away = abs(distance) if both_ways else max(-distance, 0)
        single = own // 2
        if away < single:
            assert bucket == start + away
            continue
        exact = single + log(away / single) / log(farthest / single) * (own - single)
        assert bucket - start in {min(int(exact + error), own - 1) for error in (-1e-5, 0, 1e-5)}
    assert found.min() == 0
    assert found.max() == count - 1


@pytest.mark.parametrize("count", [0, 1, 2, 3, 200])
def test_buckets_that_make_no_sense(count: int, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"buckets of distances up to 10|relative_buckets_count is"):
        tract_gguf.load_halves(
            write(
                tmp_path / "t5",
                T5 | {"relative_attention_num_buckets": count, "relative_attention_max_distance": 10},
                shapes_of_t5()
                | {
                    f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (count, 4)
                    for half in ("encoder", "decoder")
                },
            )
        )


# --- what is wrong ---


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (T5 | {"d_model": None}, r"nothing as t5\.encoder\.embedding_length, wanted an integer"),
        (T5 | {"d_model": "32"}, "has '32' as d_model, wanted a number"),
        (T5 | {"num_heads": True}, "has True as num_heads, wanted a number"),
        (T5 | {"num_heads": 0}, "wanted an integer from 1 to"),
        (T5 | {"num_heads": 3}, r"has shape \[32, 4\], wanted \[32, 3\]"),
        (T5 | {"d_kv": 8}, r"has shape \[64, 32\], wanted \[32, 32\]"),
        (T5 | {"d_kv": 1 << 30}, "wanted an integer from 1 to 65536"),
        (T5 | {"num_layers": 2}, r"there is no tensor 'blk\.1\.attn_norm\.weight'"),
        (T5 | {"num_decoder_layers": 3}, r"there is no tensor 'dec\.blk\.2\.cross_attn_k\.weight'"),
        (T5 | {"num_decoder_layers": 1}, r"nothing reads the weights dec\.blk\.1\.cross_attn_k"),
        (T5 | {"num_layers": 1 << 40}, "wanted an integer from 1 to|layers, [0-9]+ are allowed"),
        (T5 | {"num_decoder_layers": 1 << 16}, "there is no tensor|layers, [0-9]+ are allowed"),
        (T5 | {"feed_forward_proj": "gated-tanh"}, "units are of the function 'tanh', wanted gelu_new"),
        (T5 | {"feed_forward_proj": "double-gelu"}, "of the function 'double-gelu', wanted NAME or gated-NAME"),
        (T5 | {"feed_forward_proj": "gated-relu"}, "units are of the function 'relu'"),
        (
            T5 | {"relative_attention_max_distance": 1 << 22},
            "relative_farthest is 4194304, wanted an integer from 1 to",
        ),
        (T5 | {"vocab_size": 7}, None),
        (WHISPER | {"num_mel_bins": 9}, r"'conv1\.weight' has shape \[32, 8, 3\], wanted \[32, 9, 3\]"),
        (WHISPER | {"num_mel_bins": 1 << 20}, "wanted an integer from 1 to 4096"),
        (WHISPER | {"max_source_positions": 21}, r"'position_embd\.weight' has shape \[20, 32\], wanted \[21, 32\]"),
        (WHISPER | {"max_source_positions": 1 << 40}, "wanted an integer from 1 to"),
        (WHISPER | {"decoder_attention_heads": 5}, r"has shape \[32, 32\], wanted \[30, 32\]"),
        (WHISPER | {"encoder_attention_heads": 5}, r"has shape \[32, 32\], wanted \[30, 32\]"),
        (WHISPER | {"activation_function": "relu"}, "units are of the function 'relu', wanted gelu or gelu_new"),
        (WHISPER | {"encoder_ffn_dim": 47}, r"has shape \[48, 32\], wanted \[47, 32\]"),
        (WHISPER | {"decoder_layers": 0}, r"wanted an integer from 1|nothing reads"),
    ],
    ids=str,
)
def test_what_makes_no_network_is_said(config: dict[str, Any], wanted: str | None, tmp_path: Path) -> None:
    folder = write(tmp_path / "model", config)
    if wanted is None:
        tract_gguf.load_halves(folder)
        return
    with pytest.raises(ModelError, match=wanted) as raised:
        tract_gguf.load_halves(folder)
    assert str(folder) in str(raised.value)


@pytest.mark.parametrize("name", [*shapes_of_t5()])
def test_each_tensor_is_missed(name: str, tmp_path: Path) -> None:
    """But the head, in whose place the matrix of tokens is."""
    shapes = {key: shape for key, shape in shapes_of_t5().items() if key != name}
    folder = write(tmp_path / "model", T5, shapes)
    if name == "lm_head.weight":
        tract_gguf.load_halves(folder)
        return
    with pytest.raises(CorruptModel, match="there is no tensor"):
        tract_gguf.load_halves(folder)


def test_tensors_that_nothing_reads_are_said(tmp_path: Path) -> None:
    for number, (config, shapes, name) in enumerate(
        [(T5, shapes_of_t5(), "encoder.block.0.x.weight"), (WHISPER, shapes_of_whisper(), "model.decoder.y.weight")]
    ):
        with pytest.raises(Unsupported, match="nothing reads the weights"):
            tract_gguf.load_halves(write(tmp_path / str(number), config, shapes | {name: (2, 2)}))
    old = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    tract_gguf.load_halves(
        write(tmp_path / "old", T5, shapes_of_t5() | {old: (32, 4), "encoder.embed_tokens.weight": (96, 32)})
    )


def test_a_tensor_that_is_there_twice(tmp_path: Path) -> None:
    shapes = shapes_of_t5() | {"token_embd.weight": (96, 32)}
    with pytest.raises(CorruptModel, match=r"two tensors that files call 'token_embd\.weight'"):
        tract_gguf.load_halves(write(tmp_path / "model", T5, shapes))


def test_limits_count(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", T5)
    with pytest.raises((LimitExceeded, CorruptModel), match="allowed"):
        tract_gguf.load_halves(folder, limits=LoadLimits(max_tensor_bytes=1000))
