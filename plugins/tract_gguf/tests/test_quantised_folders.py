"""Folders whose weights were quantised, beside their numbers in f64; and folders that are wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tract_gguf
from folders import KEPT, TOKENS, safetensors, weights
from plainly import Plain
from quantised import METHODS
from tract_cpu.table import BLOCKS
from tract_gguf.folders.quantised.schemes import put_together
from tract_gguf.folders.safetensors import read_tensors
from tract_gguf.reading.quantised import Quantised, QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor

import tract_core as tract
from tract_core.data import DatumType
from tract_core.data.blocks import Blocks
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wiring import wire_one
from tract_core.plugins import default_registry
from tract_core.runtime.explain import Placement

Array = np.ndarray[Any, Any]

LLAMA = json.loads(KEPT.read_text())["llama"]
LLAMA["config"]["num_hidden_layers"] = 1
LLAMA["shapes"] = {name: shape for name, shape in LLAMA["shapes"].items() if not re.search(r"layers\.[12]\.", name)}
BOUND = 4e-6
"""How far logits are from those in f64, of the largest of them."""

PARTS = {f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"} | {"self_attn.o_proj": "attn_output"}
PARTS |= {f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")}
PARTS |= {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
ON_CPU = ("gptq-4-act-order", "gptq-2-symmetric", "packed-4", "fp8-blocks")
"""Methods that the compiled runtime is asked about too: one for each kind of code and zero."""

ENDS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def name_in_files(module: str) -> str:
    if module in ENDS:
        return ENDS[module]
    _, _, number, part = module.split(".", 3)
    return f"blk.{number}.{PARTS[part]}"


def written(folder: Path, method: str) -> dict[str, Array]:
    """A folder of a Llama of which all linear layers are quantised but that of the vocabulary; its numbers in f64."""
    config, write = METHODS[method]
    tensors, exact = dict[str, Array](), dict[str, Array]()
    for name, shape in LLAMA["shapes"].items():
        module = name.removesuffix(".weight")
        held = weights(name, shape)
        parts, numbers = write(module, held) if "_proj" in module else ({name: held}, held.astype(np.float64))
        tensors |= parts
        exact[f"{name_in_files(module)}.weight"] = numbers
    save(folder, tensors, config)
    return exact


def save(folder: Path, tensors: dict[str, Array], quantisation: object, config: Any = LLAMA["config"]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": quantisation}))
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    return folder


class Exact(Plain):
    """A network of one layer, as a folder says, in NumPy and f64: it knows nothing of quantisation."""

    def __init__(self, exact: dict[str, Array], config: Any = LLAMA["config"]) -> None:
        self.name, self.weights, self.neighbours = "qwen2", exact, False
        self.heads, self.key_heads, self.size = 4, 2, 16
        said = {"block_count": 1, "attention.layer_norm_rms_epsilon": config["rms_norm_eps"]}
        said |= {"rope.freq_base": config["rope_parameters"]["rope_theta"]}
        said |= {"expert_used_count": config.get("num_experts_per_tok")}
        self.said = {f"qwen2.{key}": value for key, value in said.items()}


def numbers_of(held: Quantised | Blocks) -> Array:
    """The matrix in f64, with its columns in order."""
    if isinstance(held, Blocks):
        return held.to_f32().astype(np.float64)
    groups = np.arange(held.codes.shape[1]) // held.block
    codes, zero = (one.astype(np.float64) for one in (held.codes, held.zero))
    found = (codes - zero[:, groups]) * held.scale.astype(np.float64)[:, groups]
    if held.order is None:
        return found
    return found[:, np.argsort(held.order)]


def logits_of(folder: Path, runtime: str) -> Array:
    """Of a prompt, and then of its rest one by one."""
    model = tract.load(folder)
    past = [np.zeros((len(TOKENS), 2, 0, 16), np.float32)] * 2
    runnable = tract.runtime_for_name(runtime).prepare(model)
    assert runtime == "reference" or stays_packed(runnable)
    found = []
    for first, last in [(0, 12), (12, 13), (13, 14)]:
        logits, *past = [one.to_numpy() for one in runnable.run([TOKENS[:, first:last], *past])]
        found.append(logits)
    return np.concatenate(found, 1)


def stays_packed(runnable: tract.Runnable) -> bool:
    """Whether nobody unpacks the seven matrices of the layer."""
    return [one.how for one in unpacking(runnable)] == ["view"] * 7


def unpacking(runnable: tract.Runnable) -> list[Placement]:
    return [one for one in runnable.explain().placements if {"DequantizeLinear", "UnpackBlocks"} & {*one.ops}]


@pytest.mark.parametrize("method", METHODS)
def test_matrices_and_logits(method, tmp_path) -> None:
    exact = written(tmp_path / "model", method)
    tensors = tract_gguf.read(tmp_path / "model").tensors
    assert {name: one.shape for name, one in tensors.items()} == {name: one.shape for name, one in exact.items()}
    quantised = {name: one.stored() for name, one in tensors.items() if isinstance(one, QuantisedTensor)}
    assert len(quantised) == len(PARTS) - 2
    for name, held in quantised.items():
        np.testing.assert_allclose(numbers_of(held), exact[name], rtol=1e-7, atol=0, err_msg=name)
        assert isinstance(held, Blocks) or blocks_of_onnx(held) is not None
    wanted = Exact(exact).logits(TOKENS)
    for runtime in ("reference", "cpu") if method in ON_CPU else ("reference",):
        found = logits_of(tmp_path / "model", runtime)
        assert np.abs(found - wanted).max() < BOUND * np.abs(wanted).max(), runtime


def blocks_of_onnx(held: Quantised) -> object:
    """How `cpu` has the matrix in blocks; ``None`` where it would unpack it."""
    op = DequantizeLinear(DatumType.F32, 1, held.block)
    return default_registry()[BLOCKS][DequantizeLinear](op, held.codes, held.scale, held.zero)


EVERY_FLOAT = np.array([code for code in range(256) if code & 127 != 127], np.uint8).view(ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize("rows", [1, 9])
def test_every_float_of_8_bits_on_cpu(rows) -> None:
    """Also those without an exponent, whose halves f32 holds no longer where these are not scaled at once."""
    codes = np.zeros((3, 256), ml_dtypes.float8_e4m3fn)
    codes[1, : EVERY_FLOAT.size] = EVERY_FLOAT
    scale = np.full((3, 8), 0.5, np.float32)
    model = TypedModel(registry=default_registry())
    x = model.add_source("x", TypedFact.of(DatumType.F32, (rows, 256)))
    parts = [model.add_const(f"c{n}", one) for n, one in enumerate((codes, scale, np.zeros((3, 8), codes.dtype)))]
    weights = wire_one(model, "weights", DequantizeLinear(DatumType.F32, 1, 32), *parts)
    product = EinSum(AxesMapping.parse("mk,nk->mn"), DatumType.F32)
    model.set_outputs([wire_one(model, "product", product, x, weights)])
    runnable = tract.runtime_for_name("cpu").prepare(tract.Model(model))
    assert [one.how for one in unpacking(runnable)] == ["view"]
    one_by_one = np.eye(256, dtype=np.float32)
    for first in range(0, 256, rows):
        taken = one_by_one[np.arange(first, first + rows) % 256]
        (found,) = runnable.run([taken])
        np.testing.assert_array_equal(found.to_numpy(), taken @ (codes.astype(np.float32) * 0.5).T)


def test_rows_that_files_have_in_another_order(tmp_path) -> None:
    """GPT-NeoX has queries, keys and values of each head together."""
    case = json.loads(KEPT.read_text())["gpt_neox"]
    config, write = METHODS["gptq-4"]
    tensors = {name: weights(name, shape) for name, shape in case["shapes"].items()}
    module = "gpt_neox.layers.0.attention.query_key_value"
    parts, exact = write(module, tensors.pop(f"{module}.weight"))
    folder = save(tmp_path / "model", tensors | parts, config, case["config"])
    found = numbers_of(tract_gguf.read(folder).tensors["blk.0.attn_qkv.weight"].stored())
    np.testing.assert_array_equal(found, exact.reshape(4, 3, 16, 64).swapaxes(0, 1).reshape(192, 64))


# --- experts, of which each is quantised ---

EXPERTS = json.loads(KEPT.read_text())["mixtral"]


def with_experts(folder: Path, methods: Sequence[str]) -> dict[str, Array]:
    """A folder of a Mixtral of one layer, whose experts are quantised by methods in turn; its numbers in f64."""
    tensors, exact, number = dict[str, Array](), dict[str, Array](), 0
    of_experts = {"w1": "ffn_gate_exps", "w2": "ffn_down_exps", "w3": "ffn_up_exps"}
    for name, shape in EXPERTS["shapes"].items():
        held, module = weights(name, shape), name.removesuffix(".weight")
        if re.search(r"layers\.[12]\.", name):
            continue
        if ".experts." not in name:
            tensors[name] = held
            in_files = "blk.0.ffn_gate_inp" if module.endswith(".gate") else name_in_files(module)
            exact[f"{in_files}.weight"] = held.astype(np.float64)
            continue
        parts, numbers = METHODS[methods[number % len(methods)]][1](module, held)
        tensors, number = tensors | parts, number + 1
        called = f"blk.0.{of_experts[module[-2:]]}.weight"
        exact[called] = np.concatenate([exact.get(called, np.empty((0, *shape))), numbers[None]])
    save(folder, tensors, METHODS[methods[0]][0], EXPERTS["config"] | {"num_hidden_layers": 1})
    return exact


@pytest.mark.parametrize("method", ["packed-4", "packed-4-zeros", "fp8-blocks", "int-rows", "mxfp4-packed"])
def test_experts(method, tmp_path) -> None:
    exact = with_experts(tmp_path / "model", [method])
    wanted = Exact(exact, EXPERTS["config"]).logits(TOKENS[:, :5])
    past = [np.zeros((len(TOKENS), 2, 0, 16), np.float32)] * 2
    for runtime in ("reference", "cpu")[: 1 + (method == "packed-4")]:
        runnable = tract.runtime_for_name(runtime).prepare(tract.load(tmp_path / "model"))
        found = runnable.run([TOKENS[:, :5], *past])[0].to_numpy()
        assert np.abs(found - wanted).max() < BOUND * np.abs(wanted).max(), runtime
        assert runtime == "reference" or [one.how for one in unpacking(runnable)] == ["view"] * 3


@pytest.mark.parametrize(
    ("methods", "wanted"),
    [
        (["packed-4-act-order"], "columns in other orders"),
        (["packed-4", "packed-8"], "fits its parts"),
        (["gptq-4", "gptq-4-short-end"], "scales.*wanted"),
    ],
)
def test_experts_that_are_unlike(methods, wanted, tmp_path) -> None:
    with_experts(tmp_path / "model", methods)
    with pytest.raises(ModelError, match=wanted):
        tract.load(tmp_path / "model")


# --- what the field's own packages make of it ---


def of_packages() -> Iterator[tuple[str, dict[str, object], dict[str, GgufTensor], Array]]:
    """Name, ``quantization_config``, the tensors of a layer, and the first rows of its numbers."""
    content = Path(__file__).with_name("quantised.safetensors").read_bytes()
    said = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    tensors = read_tensors(content, LoadLimits())
    for case, config in said.items():
        parts = {name.partition("/")[2]: one for name, one in tensors.items() if name.startswith(f"{case}/")}
        yield case, json.loads(config), parts, parts.pop("exact").stored()


@pytest.mark.parametrize("case", list(of_packages()), ids=lambda case: case[0])
def test_numbers_are_those_of_the_packages(case) -> None:
    name, config, parts, exact = case
    found = put_together({"quantization_config": config}, parts, LoadLimits())
    assert list(found) == ["layer.weight"]
    assert found["layer.weight"].shape == (1,) * (name == "gpt-oss") + (32, 64)
    held = found["layer.weight"].stored()
    np.testing.assert_allclose(numbers_of(held).reshape(32, 64)[: len(exact)], exact, rtol=1e-6, atol=1e-9)


# --- what is wrong ---

NAME = "model.layers.0.mlp.up_proj"


def refused(method: str, said: dict[str, object] | None = None, **parts: Array | None) -> str:
    """What is said of the matrix when the configuration, or parts of it, are others; ``None`` takes a part away."""
    config, write = METHODS[method]
    tensors, _ = write(NAME, weights(NAME, (24, 64)))
    for part, array in parts.items():
        tensors.pop(f"{NAME}.{part}", None)
        if array is not None:
            tensors[f"{NAME}.{part}"] = array
    held = read_tensors(safetensors(tensors), LoadLimits())
    with pytest.raises(ModelError) as raised:
        stored({"quantization_config": config | (said or {})}, held)
    return str(raised.value)


def stored(config: dict[str, object], tensors: Mapping[str, GgufTensor]) -> list[object]:
    return [one.stored() for one in put_together(config, tensors, LoadLimits()).values()]


WORDS = np.zeros((8, 24), np.int32)
GROUPS = np.arange(64, dtype=np.int32) // 32

WRONG: dict[str, tuple[str, dict[str, object], dict[str, Array | None], str]] = {
    "method": ("gptq-4", {"quant_method": "aqlm"}, {}, r"by the method 'aqlm'; known are gptq, awq, compressed-t"),
    "no method": ("gptq-4", {"quant_method": None}, {}, "by the method None"),
    "bits": ("gptq-4", {"bits": 5}, {}, r"has 5 as quantization_config\.bits, which is not read; known: 2, 3, 4, 8"),
    "bits that are others": ("gptq-4", {"bits": 8}, {}, r"qzeros.* shape is \[2, 3\], wanted \[1, 6\]|scales"),
    "3 bits": ("gptq-4", {"bits": 3}, {}, "8 words hold no whole number of integers of 3 bits"),
    "true as bits": ("gptq-4", {"bits": "4"}, {}, "has '4' as"),
    "no groups": ("gptq-4", {"group_size": 0}, {}, r"0 as quantization_config\.group_size, wanted a size of groups"),
    "negative groups": ("gptq-4", {"group_size": -7}, {}, "-7 as"),
    "absurd groups": ("gptq-4", {"group_size": 1 << 70}, {}, "wanted an integer of 32 bits"),
    "groups that are others": ("gptq-4", {"group_size": 16}, {}, r"scales.* shape is \[2, 24\], wanted \[4, 24\]"),
    "no group size": ("gptq-4", {"group_size": None}, {}, "None as"),
    "format": ("gptq-4", {"checkpoint_format": "marlin"}, {}, "'marlin' as .*; known: gptq, gptq_v2"),
    "kinds of weights": ("gptq-4", {"dynamic": {"+:.*": {"bits": 8}}}, {}, "of several kinds"),
    "no zeros": ("gptq-4", {}, {"qzeros": None}, r"no tensor 'model\.layers\.0\.mlp\.up_proj\.qzeros'"),
    "no words": ("gptq-4", {}, {"qweight": None}, r"no tensor '.*\.qweight'"),
    "words of floats": ("gptq-4", {}, {"qweight": WORDS.astype(np.float32)}, "qweight.*of type f32, wanted i32"),
    "words without an axis": ("gptq-4", {}, {"qweight": np.zeros(8, np.int32)}, "qweight.*wanted two axes"),
    "no rows": ("gptq-4", {}, {"qweight": WORDS[:, :0]}, "none of size 0"),
    "more words": ("gptq-4", {}, {"qweight": np.zeros((9, 24), np.int32)}, "scales.*wanted"),
    "scales of integers": ("gptq-4", {}, {"scales": np.zeros((2, 24), np.int32)}, "scales.*of type i32, wanted f16 or"),
    "groups of columns": ("gptq-4", {}, {"g_idx": GROUPS[:63]}, r"g_idx.* shape is \[63\], wanted \[64\]"),
    "a group that is not there": ("gptq-4", {}, {"g_idx": GROUPS + 1}, "g_idx.*does not give 32 columns to each group"),
    "negative group": ("gptq-4", {}, {"g_idx": GROUPS - 1}, "g_idx.*from 0 to 1"),
    "uneven groups": ("gptq-4", {}, {"g_idx": GROUPS * 0}, "g_idx.*from 0 to 1"),
    "both": ("gptq-4", {}, {"weight": np.zeros((24, 64), np.float32)}, "beside those that it was quantised to"),
    "awq's version": ("awq", {"version": "gemv"}, {}, "'gemv' as .*version"),
    "awq's bits": ("awq", {"bits": 8}, {}, "8 as .*bits"),
    "awq's zeros": ("awq", {}, {"qzeros": None}, "no tensor .*qzeros"),
    "awq's scales": ("awq", {"group_size": 64}, {}, r"scales.* wanted \[1, 24\]"),
    "compressed format": ("packed-4", {"format": "marlin-24"}, {}, "'marlin-24' as"),
    "no groups of layers": ("packed-4", {"config_groups": None}, {}, "None as .*config_groups, wanted an object"),
    "many groups": ("packed-4", {"config_groups": {str(n): {} for n in range(999)}}, {}, "has 999 .*, 256 are allowed"),
    "no shape": ("packed-4", {}, {"weight_shape": None}, "no tensor .*weight_shape"),
    "a shape of floats": ("packed-4", {}, {"weight_shape": np.ones(2, np.float32)}, "weight_shape.*of type f32"),
    "an absurd shape": ("packed-4", {}, {"weight_shape": np.array([-1, 1 << 60])}, "sizes are -1 and"),
    "another shape": ("packed-4", {}, {"weight_shape": np.array([24, 640])}, "nothing of .*config_groups fits"),
    "scales for others": (
        "packed-4",
        {},
        {"weight_scale": np.ones((24, 3), np.float16)},
        "config_groups fits its parts",
    ),
    "no zero point": ("packed-4-zeros", {}, {"weight_zero_point": None}, "no tensor .*weight_zero_point"),
    "a zero point of bytes": ("packed-4-zeros", {}, {"weight_zero_point": np.zeros((3, 4), np.int8)}, "of type i8"),
    "columns of groups": ("packed-4-act-order", {}, {"weight_g_idx": GROUPS * 0}, "weight_g_idx.*does not give 32"),
    "nvfp4": ("mxfp4-packed", {}, {"weight_global_scale": np.ones(1, np.float32)}, "NVFP4 is not read"),
    "half a block": ("mxfp4-packed", {}, {"weight_packed": np.zeros((24, 8), np.uint8)}, "wanted whole blocks"),
    "bytes as weights": ("int-rows", {}, {"weight": np.zeros((24, 64), np.uint8)}, "of type u8, wanted i8 or f8e4m3fn"),
    "a block of three": ("fp8-blocks", {"weight_block_size": [1, 2, 3]}, {}, "wanted two integers above 0"),
    "a block of none": ("fp8-blocks", {"weight_block_size": [0, 32]}, {}, "wanted two integers above 0"),
    "other blocks": ("fp8-blocks", {"weight_block_size": [1, 1]}, {}, r"wanted \[24, 64\]: one for 1 rows and 1 col"),
    "no scale": ("fp8-blocks", {}, {"weight_scale_inv": None}, r"no tensor .*weight_scale_inv"),
    "e5m2": ("fp8-blocks", {"fmt": "e5m2"}, {}, "'e5m2' as"),
    "nf4": ("llm-int8", {"load_in_8bit": False}, {}, "not those of NF4"),
    "rows of scales": ("llm-int8", {}, {"SCB": np.ones(23, np.float32)}, r"SCB.* shape is \[23\], wanted \[24\]"),
}


@pytest.mark.hostile
@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_matrix_is_said(name) -> None:
    method, said, parts, wanted = WRONG[name]
    assert re.search(wanted, refused(method, said, **parts))


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("blocks", "scales", "wanted"),
    [((24, 2, 8), (24, 2), r"wanted \[\.\.\., K/32, 16\]"), ((24, 2, 16), (24, 3), r"wanted \[24, 2\]")],
)
def test_blocks_that_are_none(blocks, scales, wanted) -> None:
    tensors = {"up_blocks": np.zeros(blocks, np.uint8), "up_scales": np.zeros(scales, np.uint8)}
    held = read_tensors(safetensors(tensors), LoadLimits())
    with pytest.raises(CorruptModel, match=wanted):
        put_together({"quantization_config": {"quant_method": "mxfp4"}}, held, LoadLimits())


def test_limits_on_one_tensor() -> None:
    tensors, _ = METHODS["gptq-2"][1](NAME, weights(NAME, (32, 64)))
    held = read_tensors(safetensors(tensors), LoadLimits())
    with pytest.raises(LimitExceeded, match=rf"{NAME}.weight.*it takes 2048 bytes, 1024 are allowed"):
        put_together({"quantization_config": METHODS["gptq-2"][0]}, held, LoadLimits(max_tensor_bytes=1024))


def test_what_is_no_configuration(tmp_path) -> None:
    with pytest.raises(CorruptModel, match="as quantization_config, wanted an object"):
        tract.load(save(tmp_path / "model", {"x": np.zeros(1, np.float32)}, [1]))


def test_a_table_of_tokens_whose_columns_lie_in_another_order_is_refused(tmp_path) -> None:
    config, write = METHODS["gptq-4-act-order"]
    tensors = {name: weights(name, shape) for name, shape in LLAMA["shapes"].items()}
    parts, _ = write("model.embed_tokens", tensors.pop("model.embed_tokens.weight"))
    with pytest.raises(Unsupported, match=r"columns of 'token_embd\.weight' lie in another order"):
        tract.load(save(tmp_path / "model", tensors | parts, config))


def test_what_activations_are_rounded_by_is_left_aside() -> None:
    config, write = METHODS["fp8-one"]
    tensors, _ = write(NAME, weights(NAME, (24, 64)))
    tensors |= {f"{NAME}.input_scale": np.ones(1, np.float32), "model.norm.weight": np.ones(64, np.float32)}
    found = put_together(
        {"quantization_config": config}, read_tensors(safetensors(tensors), LoadLimits()), LoadLimits()
    )
    assert {*found} == {f"{NAME}.weight", "model.norm.weight"}
